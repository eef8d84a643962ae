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

// What follows is generated by `cargo xtask node --types` from the kernel's own types.

/** How a kernel is opened. */
export interface KernelConfig {
  /** The workspace: the directory that cells work in. */
  root: string | URL;
  /** The session whose state cells see and whose chain their events join; `default` if absent. */
  session?: string;
  /** The same by the name that harnesses have for it; one of the two. */
  sessionId?: string;
  /**
   * Where objects, journal and sessions lie: a directory outside the workspace, or `transient` for a temporary one that goes
   * with the kernel. Without it, one under the user's state directory.
   */
  store?: "transient" | string | URL;
  /** Budgets of a cell that names none. */
  budgets?: Budgets;
  /** How long a command may take to obey a request to end before it is killed; 500 if absent. */
  graceMs?: number;
  /** What `z.read` may read outside the workspace: anything (the default), nothing, or what lies below directories. */
  externalReads?: ExternalReads;
  /** Whether `z.run` may run commands; it may by default. */
  commands?: Commands;
  /**
   * How effects of commands are captured: in a private view where this machine allows one (the default), in nothing else, or
   * by comparing the tree before and after.
   */
  capture?: Capture;
  /** Directories outside the workspace that commands may write to, beside the documented tool-chain caches. */
  writablePaths?: string[];
  /** What a commit survives; `power` by default. */
  durability?: Durability;
  /** Cells that run at once; more wait. 16 if absent. */
  concurrentCells?: number;
  /** May deny any call before it happens. */
  policy?: Policy;
  /** Effects on the outside world that cells may ask for; none without it. */
  effects?: Effects;
  /** Further trees that cells see as `mount:NAME/path`, by name, and nothing can change. */
  mounts?: Record<string, Mount>;
  /** Signs every event: the 32 secret bytes of an Ed25519 key, or their 64 hexadecimal digits. */
  signingKey?: string | Uint8Array;
}

/** The budgets of one cell. Times in milliseconds, sizes in bytes, shown text in tokens. */
export interface Budgets {
  /** Size of the source; a larger one is `invalid_input`. */
  sourceBytes?: number;
  /** Wall-clock time; beyond it `deadline`. */
  wallMs?: number;
  /** CPU time of the frame's thread; beyond it `budget`, like all that follow. */
  cpuMs?: number;
  /** V8's heap. */
  heapBytes?: number;
  /** Array buffers, resizable ones at their maximum. */
  arrayBufferBytes?: number;
  /** Calls on `z`. */
  calls?: number;
  /** Calls on `z` at once; more wait. */
  concurrentCalls?: number;
  /** Arguments of calls that are not answered yet. */
  pendingArgumentBytes?: number;
  /** Timers. */
  timers?: number;
  /** Tokens of the value shown; beyond it the value is projected. */
  valueTokens?: number;
  /** Tokens of console output shown; beyond it projected. */
  consoleTokens?: number;
  /** Tokens of each output stream of a run shown; beyond it projected. */
  streamTokens?: number;
  /** Output of one run that is kept; beyond it the run ends with reason `limit`. */
  runOutputBytes?: number;
  /** Processes of one run at once; beyond it reason `limit`. */
  processes?: number;
  /** Bytes staged by edits. */
  stagedBytes?: number;
  /** Largest text file that `z.read` returns whole without `full`. */
  inlineBytes?: number;
}

/** `allow`, `deny`, or what lies below these directories. */
export type ExternalReads = Permission | string[];

/** Whether something may be done. */
export type Permission = "allow" | "deny";

/** Whether commands may be run. */
export type Commands = Permission;

/** How effects of commands are captured. */
export type Capture = "prefer_private" | "require_private" | "baseline";

/** What survives a crash. */
export type Durability = "power" | "process";

/** Effects on the outside world that cells may ask for. */
export interface Effects {
  /** The channels by name: functions of the host, or a built-in channel. */
  channels: Record<string, EffectChannel | ChannelConfig>;
  /** How often an effect is tried, or asked about, before it is given up; 5 if absent. */
  ceiling?: number;
  /** How long a channel's answer is waited for; 30,000 if absent. */
  timeoutMs?: number;
  /** How long a dispatcher on another machine that died keeps the others waiting; 30,000 if absent. */
  leaseTtlMs?: number;
}

/** How a cell is run. */
export interface CellOptions {
  /** The cell's name; never one that was used before. Without it the kernel makes one. */
  id?: string;
  /** Cancels the cell when it is aborted. */
  signal?: AbortSignal;
  /** Ends what the cell waits for when it is fired, and lets the cell go on. */
  interrupt?: Interrupt;
  /** Wall-clock time; without it the budget's. Zero: the cell is parsed, and nothing runs. */
  timeoutMs?: number;
  /** Budgets; without them the kernel's. What they do not name has its default. */
  budgets?: Budgets;
  /** What the cell sees as `input`: an object of JSON values. */
  input?: Record<string, unknown>;
  /** Environment variables that every command of the cell gets. */
  env?: Record<string, string>;
  /** What a command reads whose call names no `stdin`. */
  stdin?: string | Uint8Array;
  /** Directory that commands start in, relative to the root; without it the root. */
  cwd?: string;
  /** Gets the output of commands while they run. */
  onOutput?: (output: Output) => void;
}

/** How a committed cell is taken back. */
export interface UndoOptions {
  /** Only what lies at or below these paths; without it everything. */
  paths?: string[];
  /** Tell what would be done, with the differences, and do nothing. */
  dryRun?: boolean;
}

/** What an undo did, or would do. */
export interface UndoReport {
  /** `committed` if a path was changed; `none` for a dry run, and where nothing was left to take back. */
  disposition: Disposition;
  /** One a path that is, or would be, changed. */
  receipts: EditReceipt[];
  /** Paths that were left as they are, because they are not what the cell left any more: with the three versions. */
  conflicts: PathConflict[];
  /** Whether the session's state was taken back, too: never. Facts that the cell set stay set. */
  stateUndone: boolean;
  /** The undo's own event, by which it can be undone; absent where nothing was changed. */
  event?: string;
}

/** What became of a cell's effects. */
export type Disposition = "none" | "committed" | "restored" | "never_admitted";

/** What an edit staged. It says *staged*: the live tree changes when the cell completes. */
export interface EditReceipt {
  /** Always `staged` inside a cell; `committed` in an event. */
  status: ReceiptStatus;
  /** The path. */
  path: string;
  /** What it was; absent where nothing was. */
  before?: PathState;
  /** What it becomes; absent where nothing will be. */
  after?: PathState;
  /** Unified diff of text, bounded; empty where no text changes. */
  diff?: string;
  /** Further facts, such as the number of replacements (`matches`). */
  notes?: Record<string, number>;
}

/** How far a change has come. */
export type ReceiptStatus = "staged" | "committed";

/** What a path was or becomes. */
export interface PathState {
  /** File, directory or symlink. */
  kind: EntryKind;
  /** Permission bits (0 for a symlink, which has none of its own). */
  mode: number;
  /** Digest of a file's bytes, or of a symlink's target. */
  digest?: string;
  /** Size of a file. */
  bytes?: number;
}

/** What a directory entry is. */
export type EntryKind = "file" | "directory" | "symlink" | "other";

/** A path that was not as expected, with what is known of both versions. */
export interface PathConflict {
  /** The path. */
  path: string;
  /** What was expected and what was found. */
  detail: string;
  /** The version this cell made or expected. */
  ours?: string;
  /** The version found. */
  theirs?: string;
}

/** What one cell came to. */
export interface ZeroKernelResponse {
  /** The word `ZeroKernel`. */
  protocol: "ZeroKernel";
  /** How it ended. */
  outcome: Outcome;
  /** The exact projection recorded by the terminal event; absent where the cell returned nothing. */
  value?: unknown;
  /** Why it did not complete. */
  error?: ResponseError;
  /** What became of its effects. */
  effects: EffectsReport;
  /**
   * Every handle that the value refers to; then those of output of commands and of the console of which a part was not
   * shown (of the first 32 such streams; the event names all).
   */
  handles: string[];
  /** The terminal event; absent only when it could not be recorded. */
  event?: string;
  /** The session's state root. */
  state: StateChange;
  /** What it used. */
  ledger: ResourceLedger;
  /** Captured console output, projected. */
  console?: string;
}

/** How a cell ended. Deadline and budget are `Failed`; only the host's cancellation is `Cancelled`. */
export type Outcome = "Completed" | "Cancelled" | "Failed";

/** An error with the phase it happened in. */
export interface ResponseError {
  /** What went wrong. */
  kind: ErrorKind;
  /** What, and what to do next. */
  detail: string;
  /** Whether the same cell may succeed later without change. */
  retryable: boolean;
  /** When. */
  phase: Phase;
  /** The path, field or place inside a value that is concerned. */
  path?: string;
  /** Where in the cell's source. */
  location?: Location;
  /** What would have been accepted. */
  accepted?: string[];
}

/** What went wrong, as a program tells it apart. */
export type ErrorKind =
  | "invalid_input"
  | "syntax"
  | "outside_workspace"
  | "not_found"
  | "conflict"
  | "denied"
  | "cancelled"
  | "deadline"
  | "budget"
  | "unsupported"
  | "busy"
  | "cleanup_uncertain"
  | "corrupt"
  | "io"
  | "exception"
  | "internal";

/** When a cell failed. */
export type Phase = "rejected" | "running" | "settling";

/** A line and column, both 1-based; columns count Unicode scalar values. */
export interface Location {
  /** Line, 1-based. */
  line: number;
  /** Column in Unicode scalar values, 1-based. */
  column: number;
}

/** What became of a cell's effects. */
export interface EffectsReport {
  /** What became of them. */
  disposition: Disposition;
  /** How many paths changed, or were put back. */
  receipts: number;
  /** Paths that were not as expected. */
  conflicts: PathConflict[];
  /** Changes of ignored paths by commands, which are outside "no trace". */
  ignoredPaths: number;
  /** How effects of commands were captured. */
  capture: CaptureTier;
}

/** How effects of commands are captured. */
export type CaptureTier = "none" | "private" | "baseline" | "unattributedWrites";

/** The session's state root before and after a cell. */
export interface StateChange {
  /** Root before; absent for an empty state. */
  before?: string;
  /** Root after; absent for an empty state. */
  after?: string;
  /** Whether both are the same. */
  unchanged: boolean;
}

/** What one cell used: times in milliseconds, sizes in bytes. */
export interface ResourceLedger {
  /** Wall-clock time from admission to response. */
  wallMs: number;
  /** CPU time of the frame's thread. */
  cpuMs: number;
  /** Peak of V8's heap. */
  heapPeakBytes: number;
  /** Calls per operation. */
  calls: Partial<Record<Operation, number>>;
  /** Bytes read from the workspace, the store and outside. */
  bytesRead: number;
  /** Bytes staged by edits. */
  bytesWritten: number;
  /** Bytes of value and console shown to the caller. */
  bytesVisible: number;
  /** Tokens the value, console and run output would have cost whole. */
  tokensRaw: number;
  /** Tokens that were shown. */
  tokensVisible: number;
  /** Processes of all runs. */
  processes: ProcessCounts;
  /** How commands were confined. */
  confinement: ConfinementTier;
  /** Calls still alive at the response; 0 for a completed cell. */
  liveTasks: number;
  /** Processes still alive at the response; 0 for a completed cell. */
  liveChildren: number;
}

/** One of the six operations a cell can ask for. */
export type Operation = "read" | "find" | "edit" | "apply" | "run" | "state";

/** Processes of all runs. */
export interface ProcessCounts {
  /** Commands started. */
  started: number;
  /** Command trees proven empty. */
  reaped: number;
  /** Command trees not proven empty. */
  unproven: number;
}

/** How commands were confined; no field is ever downgraded silently. */
export interface ConfinementTier {
  /** What bounds writes: `landlock` or `none`; absent if nothing ran. */
  files?: string;
  /** What bounds the tree: `cgroup`, `pid_namespace` or `rlimits`; absent if nothing ran. */
  tree?: string;
}

/** What one cell did, as it is kept: canonical JSON (RFC 8785), chained to the session's previous event. */
export interface ZeroKernelEvent {
  /** `EVENT_SCHEMA`. */
  schema: string;
  /** The session. */
  session: string;
  /** The cell. */
  cell: string;
  /** Milliseconds since 1970 at which it was recorded. */
  atMs: number;
  /** Digest of the cell's source; absent where the host died and only the journal knew of the cell. */
  source?: string;
  /** How it ended. */
  outcome: Outcome;
  /** Why it did not complete. */
  error?: ResponseError;
  /** What became of its effects. */
  disposition: Disposition;
  /** The session's state root. */
  state: StateChange;
  /** The paths it changed. */
  receipts: EditReceipt[];
  /** The commands it ran. */
  processes: ProcessVerdict[];
  /** Absolute paths outside the workspace that it read. */
  externalReads: string[];
  /** The effects on the outside world that it asked for, or the one whose end this event records. */
  effects?: EffectRecord[];
  /** Handles that its value refers to. */
  handles: string[];
  /** What it used. */
  ledger: ResourceLedger;
  /** Digest of the canonical JSON of the value shown; absent where there is none. */
  value?: string;
  /** Captured console output; whole, in the store. */
  console?: string;
  /** The session's previous event. */
  previous?: string;
  /** What the host did by itself, where no cell ran. */
  act?: HostAct;
  /** Paths that were not as expected when effects were published or taken back. */
  conflicts?: PathConflict[];
  /** Changes of commands under ignored paths. */
  ignoredPaths?: number;
  /** How effects of commands were captured. */
  capture?: CaptureTier;
  /** The host's signature over the canonical form of this event without this field. */
  signature?: Signature;
}

/** What became of one command. */
export interface ProcessVerdict {
  /** The argument vector. */
  argv: string[];
  /** How the command itself ended. */
  termination: Termination;
  /** Its exit code, if it exited. */
  exitCode?: number;
  /** The signal's name, if one ended it. */
  signal?: string;
  /** Why it ended. */
  reason: EndReason;
  /** Whether its whole tree is gone. */
  cleanup: Cleanup;
  /** Handle of its standard output. */
  stdout: string;
  /** Handle of its standard error. */
  stderr: string;
}

/** How the command itself ended. */
export type Termination = "exited" | "signalled" | "spawn_failed";

/** Why the command ended. */
export type EndReason = "natural" | "timeout" | "cancelled" | "limit";

/** Whether the kernel's process owner saw the whole tree end. */
export type Cleanup = "clean" | "uncertain";

/** An effect and what became of it so far. */
export interface EffectRecord {
  /** The word `effect`. */
  kind: EffectTag;
  /** Its name. */
  handle: string;
  /** The channel. */
  effect: string;
  /** Business identity. */
  key: string;
  /** Where the key is unique. */
  scope: EffectScope;
  /** The session of the cell that asked for it. */
  session: string;
  /** The cell that asked for it. */
  cell: string;
  /** The intent, an object of the store: the payload is there, too. */
  intent: string;
  /** What the channel gets; absent in events. */
  payload?: unknown;
  /** Where it stands. */
  state: EffectState;
  /** How often its channel was called. */
  attempts: number;
  /** How often nobody could tell whether it was done. */
  unknown: number;
  /** Fencing token of the last claim; 0 before the first. */
  epoch: number;
  /** What the channel answered. */
  evidence?: unknown;
  /** Why it is not done. */
  detail?: string;
  /** The event that records how it ended. */
  event?: string;
}

/** The word `effect`. */
export type EffectTag = "effect";

/** Where an effect's key is unique. */
export type EffectScope = "workspace" | "session" | "cell";

/**
 * Where an effect stands.
 *
 * ```text
 * staged → prepared → claimed → dispatched → committed
 *             ↑  ↑________|         |  |____→ abandoned    unknown too often
 *             |_____________________|  |____→ quarantined  not sent too often
 *                    not sent
 * ```
 */
export type EffectState = "staged" | "prepared" | "claimed" | "dispatched" | "committed" | "abandoned" | "quarantined";

/** What a host did to a session by itself. It is recorded in the session's chain as a cell's end is. */
export type HostAct = { undo: { of: string } } | { set: { keys: string[] } } | "reset" | { fork: { from: string } };

/** A signature by the host's key. */
export interface Signature {
  /** `ed25519` (RFC 8032). */
  algorithm: string;
  /** The public key, 64 lowercase hexadecimal digits. */
  key: string;
  /** The signature, 128 lowercase hexadecimal digits. */
  value: string;
}

/** One fact. */
export interface StateEntry {
  /** Its key. */
  key: string;
  /** Its value. */
  value: unknown;
}

/** An error with what a caller needs to act: its kind, where, and what would have been accepted. */
export interface ZeroKernelError {
  /** What went wrong. */
  kind: ErrorKind;
  /** One or two sentences for a person or a model: what, and what to do next. */
  detail: string;
  /** Whether the same call may succeed later without change. */
  retryable: boolean;
  /** The path, field or place inside a value that is concerned. */
  path?: string;
  /** Where in the cell's source. */
  location?: Location;
  /** What would have been accepted. */
  accepted?: string[];
}

/** One effect as its channel gets it. */
export interface EffectCall {
  /** Name of the effect: never the same for two effects of a workspace. */
  handle: string;
  /** The channel's name. */
  effect: string;
  /** Business identity. A receiver that refuses a repeated key makes the effect happen exactly once. */
  key: string;
  /** What the cell gave. */
  payload: unknown;
  /** Fencing token: a receiver that remembers the greatest and refuses a lesser one is safe from a late dispatcher. */
  epoch: number;
  /** How often the channel was called for this effect, this call included. */
  attempt: number;
  /** The session of the cell that asked for it. */
  session: string;
  /** The cell that asked for it. */
  cell: string;
}

/** What a reconciliation did and what it left. */
export interface Reconciled {
  /** Done now, or found to have been done. */
  committed: string[];
  /** Certainly not done; tried again next time. */
  notSent: string[];
  /** Nobody can tell yet; asked again next time, never sent again. */
  unknown: string[];
  /** Given up: nobody could tell at the ceiling. */
  abandoned: string[];
  /** Given up: not done at the ceiling. */
  quarantined: string[];
  /** Channels that another dispatcher uses now; it, or the next reconciliation, does what is pending. */
  busy: string[];
  /** Channels with something pending that this host did not register. */
  unregistered: string[];
}

/** A built-in channel as a configuration file says it. */
export type ChannelConfig = { appendFile: { path: string } } | { command: { argv: string[]; probe?: string[]; cwd?: string; env?: Record<string, string>; timeoutMs?: number } };

/**
 * Every call of `z` that a cell can make.
 *
 * It over-approximates: a call that is made when the cell runs is here (so many times as it likes), with its arguments where
 * they are written out; not every call that is here is made.
 */
export interface Plan {
  /** The calls, in the order they are written. */
  operations: PlannedOperation[];
}

/** A call that a cell can make, or calls of one operation that are not known any further. */
export interface PlannedOperation {
  /** Which of the six. */
  operation: Operation;
  /** For `state`, which of its methods (`get`, `set`, …); absent if that is not known. */
  method?: string;
  /** With what. */
  arguments: PlannedArguments;
  /** Where it is written. */
  location: Location;
}

/** The arguments of a call. */
export type PlannedArguments = "dynamic" | { listed: PlannedArgument[] };

/** One argument. */
export type PlannedArgument = { literal: unknown } | "dynamic";

/** One event with both of its digests. */
export interface ExportedEvent {
  /** `zerostack.exported-event.v1`. */
  schema: string;
  /** The integrity digest. */
  integrity: string;
  /** The identity digest. */
  identity: string;
  /** The event, with every member it has in the store. */
  event: unknown;
}

/** The events of a session, oldest first. */
export interface ExportedChain {
  /** `zerostack.exported-chain.v1`. */
  schema: string;
  /** The session. */
  session: string;
  /** Events that were pruned before the first one; the chain begins at the last of them. */
  pruned: number;
  /** The events that are kept. */
  events: ExportedEvent[];
}

/** A statement by an issuer about a subject, with the hash of the one and the digest of both. */
export interface Receipt {
  /** The rules. */
  schema: ReceiptSchema;
  /** Who says so. */
  issuer: string;
  /** What about. */
  subject: Subject;
  /** Hash of the subject. */
  contentHash: string;
  /** Digest of the receipt. */
  digest: string;
}

/** Which rules a receipt's digest follows. */
export type ReceiptSchema = "receipt.v1" | "dreamnet.receipt.v1";

/** What a receipt is about. */
export interface Subject {
  /** What kind of thing happened. */
  kind: string;
  /** The facts. */
  payload: unknown;
  /** What it happened to: a stable name. */
  subjectKey: string;
}

/** What a file of evidence proves. */
export interface Verification {
  /** Whether nothing is invalid and something is valid. */
  valid: boolean;
  /** How far it goes: `signed`, or `integrity only` (nobody vouches for the content). */
  scope: string;
  /** The checks, in the order they were made. */
  checks: Check[];
}

/** One thing that was checked. */
export interface Check {
  /** What: `schema`, `integrity`, `identity`, `chain`, `signature`, `content`, `digest`. */
  name: string;
  /** What was found. */
  verdict: Verdict;
  /** What that means here. */
  detail: string;
}

/** What a check found. */
export type Verdict = "VALID" | "INVALID" | "NOT_CHECKED";

/** What a check of a whole store found. */
export interface StoreVerification {
  /** Whether nothing is damaged and no check of a chain is invalid. */
  valid: boolean;
  /** Objects and journal frames that are damaged, and the outbox if it is. */
  damage: Damage[];
  /** What the chains of events prove. */
  chains: ChainVerification[];
}

/** A part of the store that is damaged. */
export interface Damage {
  /** The object or journal frame. */
  what: string;
  /** What is wrong with it. */
  detail: string;
}

/** What a session's chain of events proves. */
export interface ChainVerification {
  /** The session. */
  session: string;
  /** What was found. */
  verification: Verification;
}

/** What a collection did. */
export interface GcReport {
  /** Events that were forgotten. */
  eventsPruned: number;
  /** Lock files of sessions that were removed. */
  lockFilesRemoved: number;
  /** Objects kept and removed. */
  objects: Collected;
  /** Bytes that went from the structure index: facts of contents that no file of the workspace has any more. */
  indexFreedBytes: number;
}

/** What collection did. */
export interface Collected {
  /** Objects kept. */
  kept: number;
  /** Objects removed. */
  removed: number;
  /** Bytes freed. */
  freedBytes: number;
}

/** How a store is. */
export interface StoreReport {
  /** The store's directory. */
  store: string;
  /** Whether nothing is damaged or lost. */
  healthy: boolean;
  /** What can still be read. */
  readable: Readable;
  /** What cannot be had any more, in words. */
  lost: string[];
  /** The parts that are damaged. */
  damage: Damage[];
}

/** What of a store can still be read. */
export interface Readable {
  /** Sessions whose facts are whole. */
  sessions: number;
  /** Events that are whole. */
  events: number;
  /** Commits of files that the journal still holds, and that can be undone if what they replaced is whole, too. */
  commits: number;
}

/** What a migration did. */
export interface Migrated {
  /** The version that was found. */
  from: number;
  /** The version that the store has now. */
  to: number;
}
