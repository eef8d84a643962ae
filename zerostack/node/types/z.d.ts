/**
 * What a cell sees, for whoever writes one in an editor or checks one with `tsc`:
 *
 * ```ts
 * /// <reference types="@zerostack/zero-kernel/cell" />
 * ```
 *
 * A cell is the body of an async function, so that `await` and `return` stand at its top; TypeScript wants the function
 * around it. A cell has no DOM: `setTimeout`, `URL`, `TextEncoder` and the like are there, but their types come with the
 * libraries that your project names.
 */
declare global {
  /** The six operations. Each call is a promise; what is thrown is a {@link CellError}. */
  const z: Z;
  /** What the host gave the cell. */
  const input: any;
}

/** The six operations. */
export interface Z {
  /** Of a file: all of it, with what guards a later edit. */
  read<C extends string | Uint8Array = string>(target: string, options: ReadOptions & { snapshot: true }): Promise<SnapshotRead & { content: C }>;
  /** Of a file or handle: the selected part. What is no text is a `Uint8Array`: `z.read<Uint8Array>(…)`. */
  read<C extends string | Uint8Array = string>(target: string, options: ReadOptions & Selector): Promise<PartialRead & { content: C }>;
  /** Of a directory: what lies below it. */
  read(target: string, options: ReadOptions & { recursive: true }): Promise<DirectoryListing>;
  /**
   * A small text is a string, a large or binary file a {@link FileView} (with `full` a string or `Uint8Array`), a directory a
   * {@link DirectoryListing}, an event or effect its record. Which, hangs on the target: say it where you know,
   * `z.read<string>('a.txt')`.
   */
  read<T = any>(target: string, options?: ReadOptions): Promise<T>;
  /** Text and structure, with stated coverage. */
  find(query: string, options?: FindOptions): Promise<FindResult>;
  /** One change of one file, staged. */
  edit(target: string, change: Change, options?: EditOptions): Promise<EditReceipt>;
  /** An action on the outside world, done after the commit. */
  apply(effect: EffectRequest): Promise<EffectReceipt>;
  /** All or none of the operations, in their order. */
  apply(operations: FileOperation[], options?: ApplyOptions): Promise<ApplyReceipts>;
  /** A command: arguments, or a line for `sh -c`. */
  run(command: string | string[], options?: RunOptions): Promise<RunResult>;
  /** Facts of the session. */
  readonly state: {
    /** The value, or `null`. */
    get(key: string): Promise<any>;
    set(key: string, value: unknown, options?: { expect?: unknown }): Promise<true>;
    test(key: string, value: unknown): Promise<boolean>;
    delete(key: string): Promise<boolean>;
    list(prefix?: string): Promise<StateEntry[]>;
  };
}

/** What makes a read a part of the whole. */
export type Selector =
  | { lines: [first: number, last: number] }
  | { bytes: [start: number, end: number] }
  | { symbol: string }
  | { match: string }
  | { pointer: string };

/** What an operation is refused with. */
export interface CellError extends Error {
  readonly kind: ErrorKind;
  readonly detail: string;
  readonly retryable: boolean;
  readonly path?: string;
  readonly accepted?: string[];
}
