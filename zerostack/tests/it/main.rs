//! Integration tests of the hub crate: one binary, a module per subject.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod frame_basics;
mod frame_faults;
mod frame_seal;
mod frame_soak;
mod frame_support;
mod frame_typescript;
mod frame_web;
mod hub_cancel;
mod hub_confine;
mod hub_crash;
mod hub_edit;
mod hub_evidence;
mod hub_failures;
mod hub_faults;
mod hub_find;
mod hub_fuzz;
mod hub_host;
mod hub_hostile;
mod hub_mounts;
mod hub_options;
mod hub_plan;
mod hub_private;
mod hub_read;
mod hub_run;
mod hub_session;
mod hub_shell;
mod hub_state;
mod hub_support;
mod hub_undo;
mod hub_values;
mod language;
mod nestings;
mod outbox_damage;
mod outbox_hosts;
mod outbox_stores;
mod outbox_suite;
mod outbox_support;
#[cfg(feature = "postgres")]
mod postgres_server;
mod security;

#[path = "../../fuzz/cell.rs"]
mod fuzz_cell;
#[path = "../../fuzz/program.rs"]
mod program;
