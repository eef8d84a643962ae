//! The suite on SQLite, a test per case, and on a PostgreSQL server that the test starts itself.

use crate::outbox_suite::CASES;
use crate::outbox_support::Backend;

macro_rules! on_sqlite {
    ($($case:ident)*) => {
        $(#[test]
        fn $case() {
            let (_, case) = CASES.iter().find(|(name, _)| *name == stringify!($case)).unwrap();
            case(&Backend::default());
        })*

        #[test]
        fn every_case_runs_on_sqlite() {
            let mut named = [$(stringify!($case)),*];
            let mut cases: Vec<_> = CASES.iter().map(|(name, _)| *name).collect();
            named.sort_unstable();
            cases.sort_unstable();
            assert_eq!(&named[..], cases);
        }
    };
}

on_sqlite! {
    an_effect_is_sent_after_its_cell_and_told
    a_failed_cell_dispatches_nothing
    keys_stand_for_one_payload_in_their_scope
    a_crash_at_every_step_with_an_honest_probe
    a_crash_at_every_step_without_a_probe
    a_fence_lost_between_claim_and_send
    what_a_channel_cannot_do_is_quarantined
    what_nobody_can_tell_is_abandoned
    hosts_that_die_of_an_effect_do_not_die_for_ever
    a_slow_channel_keeps_its_lease
    many_dispatchers_send_each_effect_once
    commits_are_applied_once
    transitions_are_compare_and_set
    leases_exclude_and_their_epoch_grows
    a_lapsed_lease_is_never_revived
    a_lease_is_renewed_by_the_work_that_holds_it
    every_failing_path_ends_in_quarantine
    threads_that_contend_for_a_lease_never_share_it
}

#[cfg(feature = "postgres")]
mod on_postgres {
    use std::panic::AssertUnwindSafe;
    use std::sync::Arc;

    use super::*;
    use crate::postgres_server::Server;
    use zero_contracts::ErrorKind;
    use zerostack::outbox::{FleetStore, postgres};

    /// One server for all cases, which share its tables as the workspaces of a fleet do.
    #[test]
    fn every_case_runs_on_postgres() {
        let server = Server::start();
        let address = server.address();
        let connect = {
            let address = address.clone();
            move || -> Arc<dyn FleetStore> { Arc::new(postgres::connect(&address).unwrap()) }
        };
        let backend = Backend(Some(Arc::new(connect)));
        let mut failed = Vec::new();
        for (name, case) in CASES {
            println!("on PostgreSQL: {name}");
            if std::panic::catch_unwind(AssertUnwindSafe(|| case(&backend))).is_err() {
                failed.push(*name);
            }
        }
        assert!(failed.is_empty(), "{failed:?}");
        let events = backend.store(std::path::Path::new("")).leases().unwrap();
        assert!(!events.is_empty());
    }

    #[test]
    fn a_server_that_goes_away_holds_up_no_cell_and_hears_of_it_later() {
        let mut server = Server::start();
        let backend = {
            let address = server.address();
            Backend(Some(Arc::new(move || -> Arc<dyn FleetStore> {
                Arc::new(postgres::connect(&address).unwrap())
            })))
        };
        let outside = crate::outbox_support::Outside::honest();
        let ws = crate::outbox_support::workspace(&backend, &outside, |_| {});
        ws.value("await z.edit('a', {find: '1', replacement: '2'})");
        server.stop();
        ws.value("await z.edit('a', {find: '2', replacement: '3'})");
        assert_eq!(ws.file("a"), "3\n");
        let error = ws.error("await z.apply({effect: 'mail', key: 'k', payload: 1})");
        assert!(error.kind == ErrorKind::Io && error.retryable, "{error:?}");
        server.restart();
        let begun = std::time::Instant::now();
        while ws.kernel.reconcile(&zero_contracts::CancelToken::new()).is_err() {
            assert!(begun.elapsed() < std::time::Duration::from_secs(20));
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        let workspace = std::fs::read_to_string(ws.store.path().join("workspace.id")).unwrap();
        let store = backend.store(std::path::Path::new(""));
        let events = store.events(&workspace, 0, 10).unwrap();
        assert_eq!(events.len(), 2, "both commits");
        let body: serde_json::Value = serde_json::from_str(events[1].body.as_deref().unwrap()).unwrap();
        assert_eq!(body["receipts"][0]["path"], "a");
        ws.value("await z.apply({effect: 'mail', key: 'k', payload: 1})");
        assert_eq!(outside.times().len(), 1);
    }

    #[test]
    fn a_malformed_address_and_a_server_that_is_not_there_are_told_apart() {
        let malformed = postgres::connect("port=nonsense").err().unwrap();
        assert_eq!(malformed.kind, ErrorKind::InvalidInput);
        let absent = postgres::connect("host=/nowhere user=x").err().unwrap();
        assert!(absent.kind == ErrorKind::Io && absent.retryable, "{absent:?}");
    }

    /// A host inside an async runtime may use the blocking store.
    #[test]
    fn a_caller_inside_a_runtime_may_use_it() {
        let server = Server::start();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let store = postgres::connect(&server.address()).unwrap();
            assert_eq!(store.applied("nobody").unwrap(), None);
        });
    }
}
