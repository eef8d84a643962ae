const { content, encoding, newline, bom, mode, bytes, lines, digest, snapshot } = await z.read('crlf', { snapshot: true });
return { content, encoding, newline, bom, bytes, lines, guard: [digest.length, snapshot.slice(0, 13)] };
