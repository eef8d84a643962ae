// Checked by `test/types.test.js`, never run.

import { Interrupt, ZeroKernel, ZeroKernelError } from '@zerostack/zero-kernel';
import type { ErrorKind, Mount, Policy, ZeroKernelResponse } from '@zerostack/zero-kernel';

const policy: Policy = async ({ operation, arguments: [target] }) =>
  operation === 'run' && target === 'rm' ? 'not here' : undefined;
const docs: Mount = {
  list: async (directory) => (directory === '' ? [{ name: 'a', kind: 'file', bytes: 1, version: 7 }] : undefined),
  read: (file) => (file === 'a' ? { content: 'x', version: 7 } : undefined),
};
const kernel = new ZeroKernel({
  root: new URL('.', import.meta.url),
  store: 'transient',
  policy,
  budgets: { wallMs: 1000 },
  mounts: { docs },
  capture: 'baseline',
  signingKey: new Uint8Array(32),
});
const response: ZeroKernelResponse = await kernel.executeCell('return 1', {
  signal: AbortSignal.timeout(10),
  interrupt: new Interrupt(),
  input: { n: 1 },
  stdin: new Uint8Array(),
  onOutput: ({ stream, text }) => console.log(stream === 'stdout' ? text.trim() : ''),
});
if (response.outcome === 'Failed') {
  const kind: ErrorKind | undefined = response.error?.kind;
  console.log(kind, response.error?.location?.line, response.effects.conflicts[0]?.path);
}
const value: unknown = response.value;
// @ts-expect-error: a value must be looked at before it is used
value.length;
if (response.event !== undefined) {
  const { receipts } = await kernel.undo(response.event, { dryRun: true, paths: ['src'] });
  console.log(receipts[0]?.diff);
}
for await (const { event } of kernel.events({ persistent: false })) {
  if (event.act !== undefined && event.act !== 'reset' && 'undo' in event.act) console.log(event.act.undo.of);
}
const known: boolean = await kernel.cancel('cell-1');
const bytes: Uint8Array = await kernel.object('z://blob/…');
const { valid, chains } = await kernel.verify({ session: 'default', signal: AbortSignal.timeout(10) });
const [receipt] = await kernel.receipts('z://event/…', { issuer: 'me' });
const verdicts = (await ZeroKernel.verifyEvidence(await kernel.exportChain(), { key: '00' })).checks.map((check) => check.verdict === 'INVALID');
console.log(known, bytes.length, valid, chains[0]?.verification.scope, receipt?.contentHash, verdicts);
console.log((await kernel.gc({ keepEvents: 1 })).objects.freedBytes, Object.keys(ZeroKernel.schemas().$defs));
const fork: ZeroKernel = await kernel.forkSession('other', { attached: true });
await fork.session().set('key', [1], { expect: null });
const { cells } = await kernel.shutdown({ deadlineMs: 100 });
console.log(cells.join(), (await kernel.status()).lease?.pid);
try {
  await kernel.initialize();
} catch (why) {
  if (why instanceof ZeroKernelError && why.kind === 'not_found') console.log(why.accepted?.join());
}

// @ts-expect-error: there is no such option
await kernel.executeCell('', { timeout: 1 });
// @ts-expect-error: a mount has two functions
new ZeroKernel({ root: '.', mounts: { half: { list: () => [] } } });
// @ts-expect-error: the root is missing
new ZeroKernel({});
// @ts-expect-error: no such outcome
console.log(response.outcome === 'Done');
