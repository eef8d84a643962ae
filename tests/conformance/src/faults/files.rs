//! Defects of a file engine. They are seeded inside [`MemoryFiles`](crate::models::files::MemoryFiles): most cannot be
//! brought about from outside.

super::faults! {
    /// One defect of a file engine.
    pub enum FileFault {
        ExternalReadsMagic, SnapshotTakesIgnored, SnapshotForgetsModes, SnapshotForgetsEmptyDirectories,
        ManifestUnsorted, SnapshotViewIsLive, DiffMissesRemovals, RecoverForgets, NeverOpen, CommitsFromTheStart,
        SeenIsForgotten, EpochForgotten, RevertIgnoresPaths, RevertOverwrites, RevertRefusesWhatIsBack, CollectsRoots, VerifySeesNothing, CommitsAreLost,
        CreateOverwrites, GuardsIgnored, ReadLogIgnored, UnreadMayBeReplaced, MoveLosesTheInside, CopyLosesTheMode,
        SymlinksLeadOut, EditLosesTheMode, EditReplacesSymlinks, NewlinesNormalised, ReplacementIsExpanded,
        AmbiguousTakesAll, FailureStagesAPart, BudgetIgnored, StagingIsLive, ViewIsLive, AnyMarkWillDo,
        RollBackDoesNothing, NothingWeighs, ReceiptsForgetBefore, MaterializeDoesNothing, CaptureSeesNothing,
        CommitOverwrites, RefusalLeavesTraces, FenceIgnored, CommitUncancellable, SequenceStands, SealIsLost,
        RestoreDoesNothing, RestoreOverwrites, RestoreForgetsModes, RestoreTellsNoConflicts, DropDoesNothing,
    }
}
