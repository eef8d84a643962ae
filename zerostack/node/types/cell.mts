// Checked by `test/types.test.js`, never run: what an author of cells gets.

/// <reference types="@zerostack/zero-kernel/cell" />

import type { DirectoryListing, FileView, FindItem } from '@zerostack/zero-kernel/cell';

export async function cell() {
  const text: string = await z.read('a.txt');
  const { content, next } = await z.read('a.txt', { lines: [1, 2] });
  const bytes = (await z.read<Uint8Array>('a.png', { bytes: [0, 8] })).content.byteLength;
  const guard = await z.read('a.txt', { snapshot: true });
  const listing = await z.read<DirectoryListing>('.');
  const view = await z.read<FileView>('large.log');
  const names = (await z.read('src', { recursive: true })).entries.map((entry) => entry.path);
  const found = await z.find('main', { mode: 'callers', path: ['src', 'tests/**'] });
  const sites: string[] = found.items.map((item: FindItem) => `${item.path}:${item.range.start.line} ${item.confidence ?? ''}`);
  const receipt = await z.edit(guard.snapshot, { find: 'a', replacement: 'b', count: 'all' });
  const { receipts } = await z.apply([{ path: 'a', mode: 0o755 }, { move: ['b', 'c'] }], { verify: { parse: true } });
  const { status, evidence } = await z.apply({ effect: 'ticket', key: '1', payload: {} });
  const ran = await z.run(['make', 'test'], { timeoutMs: 1000 });
  await z.state.set('seen', [text, content, next, bytes, view.omitted, names, listing.complete, sites, receipts.length, status, evidence, input.name]);
  // @ts-expect-error: an operation has no such option
  await z.read('a', { line: [1, 2] });
  // @ts-expect-error: no such mode
  await z.find('a', { mode: 'caller' });
  // @ts-expect-error: not a form of a change
  await z.edit('a', { find: 'a' });
  // @ts-expect-error: no such operation
  await z.write('a', 'b');
  return ran.exitCode === 0 ? receipt.after?.digest : ran.stderr;
}
