//! One suite for every store: each case gets a backend that nobody else uses.

mod crashes;
mod effects;
mod leases;
mod stores;

use std::time::Duration;

use crate::outbox_support::Backend;

use crashes::{
    a_crash_at_every_step_with_an_honest_probe, a_crash_at_every_step_without_a_probe,
    a_fence_lost_between_claim_and_send, hosts_that_die_of_an_effect_do_not_die_for_ever,
};
use effects::{
    a_failed_cell_dispatches_nothing, a_slow_channel_keeps_its_lease, an_effect_is_sent_after_its_cell_and_told,
    keys_stand_for_one_payload_in_their_scope, many_dispatchers_send_each_effect_once,
    what_a_channel_cannot_do_is_quarantined, what_nobody_can_tell_is_abandoned,
};
use leases::{
    a_lapsed_lease_is_never_revived, a_lease_is_renewed_by_the_work_that_holds_it,
    every_failing_path_ends_in_quarantine, leases_exclude_and_their_epoch_grows,
    threads_that_contend_for_a_lease_never_share_it,
};
use stores::{commits_are_applied_once, transitions_are_compare_and_set};

/// A case of the suite.
pub type Case = fn(&Backend);

/// Every case by name.
pub const CASES: &[(&str, Case)] = &[
    (
        "an_effect_is_sent_after_its_cell_and_told",
        an_effect_is_sent_after_its_cell_and_told,
    ),
    ("a_failed_cell_dispatches_nothing", a_failed_cell_dispatches_nothing),
    (
        "keys_stand_for_one_payload_in_their_scope",
        keys_stand_for_one_payload_in_their_scope,
    ),
    (
        "a_crash_at_every_step_with_an_honest_probe",
        a_crash_at_every_step_with_an_honest_probe,
    ),
    (
        "a_crash_at_every_step_without_a_probe",
        a_crash_at_every_step_without_a_probe,
    ),
    (
        "a_fence_lost_between_claim_and_send",
        a_fence_lost_between_claim_and_send,
    ),
    (
        "what_a_channel_cannot_do_is_quarantined",
        what_a_channel_cannot_do_is_quarantined,
    ),
    ("what_nobody_can_tell_is_abandoned", what_nobody_can_tell_is_abandoned),
    (
        "hosts_that_die_of_an_effect_do_not_die_for_ever",
        hosts_that_die_of_an_effect_do_not_die_for_ever,
    ),
    ("a_slow_channel_keeps_its_lease", a_slow_channel_keeps_its_lease),
    (
        "many_dispatchers_send_each_effect_once",
        many_dispatchers_send_each_effect_once,
    ),
    ("commits_are_applied_once", commits_are_applied_once),
    ("transitions_are_compare_and_set", transitions_are_compare_and_set),
    (
        "leases_exclude_and_their_epoch_grows",
        leases_exclude_and_their_epoch_grows,
    ),
    ("a_lapsed_lease_is_never_revived", a_lapsed_lease_is_never_revived),
    (
        "a_lease_is_renewed_by_the_work_that_holds_it",
        a_lease_is_renewed_by_the_work_that_holds_it,
    ),
    (
        "every_failing_path_ends_in_quarantine",
        every_failing_path_ends_in_quarantine,
    ),
    (
        "threads_that_contend_for_a_lease_never_share_it",
        threads_that_contend_for_a_lease_never_share_it,
    ),
];

/// Time to live of a lease that is to lapse.
const SHORT: Duration = Duration::from_millis(60);

const ASK: &str = "return z.apply({effect: 'mail', key: 'order-1', payload: {to: 'a', n: 1}})";

fn uuid() -> String {
    tempfile::Builder::new()
        .rand_bytes(24)
        .tempfile()
        .unwrap()
        .path()
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned()
}
