/**
 * Runs cells on a workspace, inside this process.
 *
 * The constructor reads the options and opens nothing; `initialize`, or the first call, does. Promises are rejected with a
 * {@link ZeroKernelError}: for calls that are not as they should be, and where the workspace cannot be used. What becomes of
 * a cell is always a response.
 */
export class ZeroKernel {
  /** @throws ZeroKernelError for options that are refused, with the accepted ones. */
  constructor(config: KernelConfig);

  /** Opens the workspace; what dead cells left open is ended first. Doing so again only tells the status. */
  initialize(): Promise<Status>;

  /**
   * Runs a cell: the body of an async JavaScript or TypeScript function that sees `z`, `input` and `console`. Resolves to its one response,
   * whatever becomes of it.
   */
  executeCell(source: string, options?: CellOptions): Promise<ZeroKernelResponse>;

  /**
   * Says which calls of `z` a cell can make, without running it; no call that it makes is missing. Rejected with `syntax` for
   * what does not parse.
   */
  planCell(source: string): Promise<Plan>;

  /** Takes back what the cell of an event committed, whole or by path. The undo is recorded, and can be undone. */
  undo(event: string, options?: UndoOptions): Promise<UndoReport>;

  /** The session that this kernel runs cells for. */
  session(): Session;

  /**
   * Begins a session as a copy of this one. An attached one is shut down with this one; a detached one goes on.
   */
  forkSession(name: string, options?: { attached?: boolean }): Promise<ZeroKernel>;

  /** Cancels one cell of this kernel, of whatever session, by its name; says whether the kernel knew it. Its response tells that it ended. */
  cancel(cell: string): Promise<boolean>;

  /** How the kernel is doing. */
  status(): Promise<Status>;

  /** Why commands get no private view of this workspace; undefined if they get one. Tried once. */
  whyNoPrivateView(): Promise<string | undefined>;

  /**
   * Subscribes to the events that this kernel records from now on, of every session. A persistent subscription (the default)
   * keeps the process alive until it is ended by `return()`, by leaving a `for await`, or by `shutdown`.
   */
  events(options?: { persistent?: boolean }): EventStream;

  /** The latest events of the session, newest first; 20 unless another limit is given. */
  log(options?: { limit?: number }): Promise<LogEntry[]>;
  /** An event by its handle. */
  event(event: string): Promise<ZeroKernelEvent>;
  /** The exact bytes that a handle of a response names. */
  object(handle: string): Promise<Uint8Array>;
  /** The names of the workspace's sessions, in order. */
  sessions(): Promise<string[]>;

  /** An event as a file that {@link ZeroKernel.verifyEvidence} checks with nothing else. */
  exportEvent(event: string): Promise<ExportedEvent>;
  /** The session's events as such a file, as far as they are kept. */
  exportChain(): Promise<ExportedChain>;
  /** A portable receipt for each effect that the cell of an event committed; none if it committed nothing. */
  receipts(event: string, options: { issuer: string; schema?: ReceiptSchema }): Promise<Receipt[]>;
  /**
   * Checks a file of evidence (an exported event or chain, a receipt) with nothing but the file. With `key` (64 hexadecimal
   * digits) a signature must be that key's.
   */
  static verifyEvidence(file: string | Uint8Array | ExportedEvent | ExportedChain | Receipt, options?: { key?: string }): Promise<Verification>;

  /**
   * Checks every stored object and journal frame, and the chain of every session, or of one. With `key` every event must be
   * signed by it. What is damaged is not an error but the answer.
   */
  verify(options?: { session?: string; key?: string; signal?: AbortSignal }): Promise<StoreVerification>;
  /**
   * Removes what nothing refers to any more; with `keepEvents` also all but so many of each session's latest events, and what
   * only they hold. Rejected with `busy` while cells live, in whatever process.
   */
  gc(options?: { keepEvents?: number; signal?: AbortSignal }): Promise<GcReport>;
  /** Looks at a store that may be damaged, also if a kernel would not open it: what is lost, and what can still be read. */
  static examine(config: KernelConfig): Promise<StoreReport>;
  /** Brings the store of a workspace to this version's format, all or nothing. */
  static migrate(config: KernelConfig): Promise<Migrated>;

  /** Dispatches the effects that are prepared, and asks the probes about those of unknown fate. Runs when a kernel opens, too. */
  reconcile(): Promise<Reconciled>;
  /** Effects in the order of their commits; all unless a filter says otherwise. */
  effects(options?: { states?: EffectState[]; effect?: string; limit?: number }): Promise<EffectRecord[]>;
  /** One effect by its handle. */
  effect(handle: string): Promise<EffectRecord>;
  /** Gives an effect up: it is never sent (again). */
  abandonEffect(handle: string, why: string): Promise<EffectRecord>;
  /** Prepares a quarantined effect again; the next reconciliation tries it once more. */
  retryEffect(handle: string): Promise<EffectRecord>;

  /**
   * The JSON Schemas (draft 2020-12) of requests, responses and events, as one document: `$defs` has `read`, `find`, `edit`, `apply`,
   * `run`, `state`, `response`, `event`, and what they are made of.
   */
  schemas(): Schemas;
  static schemas(): Schemas;

  /** What a model is told about cells, in fewer than 900 tokens. */
  instructions(): string;
  static instructions(): string;

  /**
   * Cancels every cell of the session and of those attached to it, waits until all have ended, at most until the deadline (10 s
   * unless given), closes the kernel, and says what could not be proven gone.
   */
  shutdown(options?: { deadlineMs?: number }): Promise<Leftovers>;
}

/** A session as its host sees it. Each call reads what is committed now, by whatever host. */
export interface Session {
  /** A fact; undefined if it is not set, or `null`. */
  get(key: string): Promise<unknown>;
  /** Sets a fact. With `expect`, only if it is that now (`null`: not set); otherwise the promise is rejected: `conflict`. */
  set(key: string, value: unknown, options?: { expect?: unknown }): Promise<void>;
  /** Deletes a fact, if it is set. */
  delete(key: string): Promise<void>;
  /** The facts whose keys start with a prefix, in order of the keys. */
  list(prefix?: string): Promise<StateEntry[]>;
  /** The response of the session's latest cell, as its event tells it. */
  lastResponse(): Promise<ZeroKernelResponse | undefined>;
  /** Empties the session's state. Its events stay, and files are not touched. */
  reset(): Promise<void>;
}

/** Events as they are recorded, for one reader at a time. */
export interface EventStream extends AsyncIterableIterator<RecordedEvent> {
  /** Resolves when every event recorded from then on will be heard. */
  readonly ready: Promise<void>;
  return(): Promise<IteratorResult<RecordedEvent>>;
}

/** An event that was recorded. */
export interface RecordedEvent {
  /** `z://event/…`: a cell reads it by `z.read`. */
  handle: string;
  event: ZeroKernelEvent;
}

/** An entry of the log; an event that is damaged has its error in its place. */
export type LogEntry = RecordedEvent | { handle: string; cell: string; error: ZeroKernelError };

/** JSON Schemas as one document. */
export interface Schemas {
  $schema: string;
  $defs: Record<string, unknown>;
}

/**
 * A further tree that cells see as `mount:NAME/path` and nothing can change. Its paths are relative to its own root, with `/`
 * between their parts; the root is `""`. It has no symlinks, and no ignore rules but what `list` says.
 *
 * An exception fails the cell's call, with its `kind` if that is one of {@link ErrorKind}; a `not_found` or Node's own `ENOENT` is
 * as good as `undefined`.
 */
export interface Mount {
  /** What lies in a directory; undefined if there is no such directory. */
  list(directory: string): Iterable<MountEntry> | undefined | Promise<Iterable<MountEntry> | undefined>;
  /** A file's content, all of one instant; undefined if there is no such file. */
  read(file: string): MountContent | undefined | Promise<MountContent | undefined>;
  /** How long an answer is waited for; 10,000 unless given. */
  readonly timeoutMs?: number;
}

/** A file's content, text or bytes, with its version if it has one. */
export type MountContent = string | Uint8Array | { content: string | Uint8Array; version?: string | number };

/** What lies in a directory of a mount. */
export interface MountEntry {
  /** Its name in the directory: not empty, and without `/`. */
  name: string;
  kind: "file" | "directory";
  /** Size of a file in bytes, which a file must have. */
  bytes?: number;
  /** Names the state of a file's content: the same version, the same bytes. Without it a search reads the file each time. */
  version?: string | number;
  /** Left out by searches and recursive listings unless the cell asks for what is ignored. */
  ignored?: boolean;
}

/** Ends what the cells it was given to wait for (a command, a search), and lets them go on. */
export class Interrupt {
  /** Ends the calls that are at work now; says how many there were. */
  fire(): number;
}

/**
 * Decides about a call of a cell before it happens. Nothing, or `true`, lets it happen; `false`, a reason, or an exception
 * denies it.
 */
export type Policy = (call: {
  operation: Operation;
  /** What the cell gave. */
  arguments: unknown[];
}) => undefined | void | boolean | string | Promise<undefined | void | boolean | string>;

/**
 * Does the effects of one name. It is called only after the cell that asked for the effect is committed; a cell that failed
 * dispatches nothing.
 */
export interface EffectChannel {
  /**
   * Does the effect and resolves to evidence of it. Throw {@link NotSent} if it certainly was not done: it is tried again. With
   * any other exception its fate is unknown, and it is never sent again unless `probe` says that it was not.
   */
  dispatch(effect: EffectCall): unknown | Promise<unknown>;
  /** Finds out whether an effect was done. `not_sent` must be final: whatever happens to an earlier call, it will not be done. */
  probe?(effect: EffectCall): Probed | Promise<Probed>;
}

/** What a probe found. */
export type Probed =
  | { status: "sent"; evidence?: unknown }
  | { status: "not_sent" }
  | { status: "unknown"; detail?: string };

/** What a channel throws for an effect that certainly was not done, and may be tried again. */
export class NotSent extends Error {
  readonly name: "NotSent";
}

/** A piece of output of a command that runs. */
export interface Output {
  cell: string;
  /** Which command of the cell: 0 for the first one started. */
  run: number;
  stream: "stdout" | "stderr";
  /** The bytes as they came; a character may be cut in two. */
  bytes: Uint8Array;
  /** The same as text; a character that was cut in two comes with its second half. */
  text: string;
}

/** How a kernel is doing. */
export interface Status {
  /** Names of the cells that run now, of every session. */
  running: string[];
  /** Frames that were given up and have not ended: V8 ran out of memory in them for good, or a native function is late. */
  framesGivenUp: number;
  /** Whether there is such a frame. */
  tainted: boolean;
  /** Whether the session was shut down. */
  closed: boolean;
  session: string;
  /** The workspace, resolved. */
  root: string;
  /** Where objects, journal and sessions lie. */
  store: string;
  /** The contract that this kernel speaks: builds with one digest understand one another in every message. */
  contract: { version: number; digest: string };
  /** Who holds the workspace, if anybody does. */
  lease?: LeaseHolder;
}

/** Who holds a workspace. */
export interface LeaseHolder {
  /** The host's process. */
  pid: number;
  /** The cell. */
  cell: string;
  epoch: number;
  /** Whether the process lives; if not, its commands are still being ended. */
  alive: boolean;
}

/** What a shutdown could not prove gone. */
export interface Leftovers {
  /** Cells that had not ended at the deadline; nothing of theirs is committed any more. */
  cells: string[];
  framesGivenUp: number;
  /** Threads that still parse the source of a cell that has ended. */
  parsers: number;
  lease?: LeaseHolder;
}

/** What a call of the host is refused with. */
export class ZeroKernelError extends Error {
  readonly name: "ZeroKernelError";
}
