for (const limit of [10, 100, 1000]) {
  try {
    await z.apply([{ path: 'limit.conf', content: `limit=${limit}\n`, expect: 'any' }], {
      verify: { command: ['sh', 'accept.sh'] },
    });
    return limit;
  } catch (error) {
    if (error.kind !== 'conflict') throw error;
  }
}
throw new Error('no limit is accepted');
