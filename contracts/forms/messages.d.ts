
export interface ZeroKernelResponse {
  protocol: "ZeroKernel";
  outcome: Outcome;
  value?: unknown;
  error?: ResponseError;
  effects: EffectsReport;
  handles: string[];
  event?: string;
  state: StateChange;
  ledger: ResourceLedger;
  console?: string;
}

export type Outcome = "Completed" | "Cancelled" | "Failed";

export interface ResponseError {
  kind: ErrorKind;
  detail: string;
  retryable: boolean;
  phase: Phase;
  path?: string;
  location?: Location;
  accepted?: string[];
}

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

export type Phase = "rejected" | "running" | "settling";

export interface Location {
  line: number;
  column: number;
}

export interface EffectsReport {
  disposition: Disposition;
  receipts: number;
  conflicts: PathConflict[];
  ignoredPaths: number;
  capture: CaptureTier;
}

export type Disposition = "none" | "committed" | "restored" | "never_admitted";

export interface PathConflict {
  path: string;
  detail: string;
  ours?: string;
  theirs?: string;
}

export type CaptureTier = "none" | "private" | "baseline" | "unattributedWrites";

export interface StateChange {
  before?: string;
  after?: string;
  unchanged: boolean;
}

export interface ResourceLedger {
  wallMs: number;
  cpuMs: number;
  heapPeakBytes: number;
  calls: Partial<Record<Operation, number>>;
  bytesRead: number;
  bytesWritten: number;
  bytesVisible: number;
  tokensRaw: number;
  tokensVisible: number;
  processes: ProcessCounts;
  confinement: ConfinementTier;
  liveTasks: number;
  liveChildren: number;
}

export type Operation = "read" | "find" | "edit" | "apply" | "run" | "state";

export interface ProcessCounts {
  started: number;
  reaped: number;
  unproven: number;
}

export interface ConfinementTier {
  files?: string;
  tree?: string;
}

export interface ZeroKernelEvent {
  schema: string;
  session: string;
  cell: string;
  atMs: number;
  source?: string;
  outcome: Outcome;
  error?: ResponseError;
  disposition: Disposition;
  state: StateChange;
  receipts: EditReceipt[];
  processes: ProcessVerdict[];
  externalReads: string[];
  effects?: EffectRecord[];
  handles: string[];
  ledger: ResourceLedger;
  value?: string;
  console?: string;
  previous?: string;
  act?: HostAct;
  conflicts?: PathConflict[];
  ignoredPaths?: number;
  capture?: CaptureTier;
  signature?: Signature;
}

export interface EditReceipt {
  status: ReceiptStatus;
  path: string;
  before?: PathState;
  after?: PathState;
  diff?: string;
  notes?: Record<string, number>;
}

export type ReceiptStatus = "staged" | "committed";

export interface PathState {
  kind: EntryKind;
  mode: number;
  digest?: string;
  bytes?: number;
}

export type EntryKind = "file" | "directory" | "symlink" | "other";

export interface ProcessVerdict {
  argv: string[];
  termination: Termination;
  exitCode?: number;
  signal?: string;
  reason: EndReason;
  cleanup: Cleanup;
  stdout: string;
  stderr: string;
}

export type Termination = "exited" | "signalled" | "spawn_failed";

export type EndReason = "natural" | "timeout" | "cancelled" | "limit";

export type Cleanup = "clean" | "uncertain";

export interface EffectRecord {
  kind: EffectTag;
  handle: string;
  effect: string;
  key: string;
  scope: EffectScope;
  session: string;
  cell: string;
  intent: string;
  payload?: unknown;
  state: EffectState;
  attempts: number;
  unknown: number;
  epoch: number;
  evidence?: unknown;
  detail?: string;
  event?: string;
}

export type EffectTag = "effect";

export type EffectScope = "workspace" | "session" | "cell";

export type EffectState = "staged" | "prepared" | "claimed" | "dispatched" | "committed" | "abandoned" | "quarantined";

export type HostAct = { undo: { of: string } } | { set: { keys: string[] } } | "reset" | { fork: { from: string } };

export interface Signature {
  algorithm: string;
  key: string;
  value: string;
}

export interface ZeroKernelError {
  kind: ErrorKind;
  detail: string;
  retryable: boolean;
  path?: string;
  location?: Location;
  accepted?: string[];
}

export interface Plan {
  operations: PlannedOperation[];
}

export interface PlannedOperation {
  operation: Operation;
  method?: string;
  arguments: PlannedArguments;
  location: Location;
}

export type PlannedArguments = "dynamic" | { listed: PlannedArgument[] };

export type PlannedArgument = { literal: unknown } | "dynamic";

export interface StateEntry {
  key: string;
  value: unknown;
}

export interface Budgets {
  sourceBytes?: number;
  wallMs?: number;
  cpuMs?: number;
  heapBytes?: number;
  arrayBufferBytes?: number;
  calls?: number;
  concurrentCalls?: number;
  pendingArgumentBytes?: number;
  timers?: number;
  valueTokens?: number;
  consoleTokens?: number;
  streamTokens?: number;
  runOutputBytes?: number;
  processes?: number;
  stagedBytes?: number;
  inlineBytes?: number;
}

export interface UndoOptions {
  paths?: string[];
  dryRun?: boolean;
}

export interface UndoReport {
  disposition: Disposition;
  receipts: EditReceipt[];
  conflicts: PathConflict[];
  stateUndone: boolean;
  event?: string;
}
