for (let n = 0; n < 9; n += 1) await z.state.set(`k${n}`, 'x'.repeat(8000));
