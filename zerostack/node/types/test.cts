// Checked by `test/types.test.js`, never run.

import kernel = require('@zerostack/zero-kernel');

const made = new kernel.ZeroKernel({ root: '.', externalReads: ['/usr/include'], commands: 'deny', durability: 'process' });
const outcome: Promise<kernel.Outcome> = made.executeCell('return 1').then((response) => response.outcome);
void outcome;
void made.log({ limit: 1 }).then(([entry]) => ('error' in entry ? entry.error.kind : entry.event.outcome));
// @ts-expect-error: no such word
new kernel.ZeroKernel({ root: '.', commands: 'maybe' });
