//! Options of one cell, and what a host hears while cells run: input of commands, streaming, interrupts, events.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use zero_contracts::response::{Outcome, Phase};
use zero_contracts::{Content, ErrorKind};
use zerostack::{CellOptions, Interrupt, OutputStream};

use crate::hub_support::Workspace;

#[test]
fn a_command_that_names_no_input_reads_the_cells() {
    let ws = Workspace::new(&[]);
    let options = CellOptions {
        stdin: Some(Content::Text("from the host\n".into())),
        ..CellOptions::default()
    };
    let cell = "const a = await z.run('cat'), b = await z.run('cat', {stdin: 'own'}); return a.stdout + b.stdout";
    let response = ws.kernel.execute_cell_with(cell, options);
    assert_eq!(response.value.unwrap().0, "from the host\nown");
}

#[test]
fn output_is_streamed_while_the_command_runs() {
    let ws = Workspace::new(&[]);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&heard);
    let begun = Instant::now();
    let options = CellOptions {
        on_output: Some(Arc::new(move |output| {
            sink.lock()
                .unwrap()
                .push((begun.elapsed(), output.run, output.stream, output.bytes.to_vec()));
        })),
        ..CellOptions::default()
    };
    let cell = "await z.run('echo one; sleep 1; echo two >&2'); return (await z.run('echo three')).stdout";
    let response = ws.kernel.execute_cell_with(cell, options);
    assert_eq!(response.value.unwrap().0, "three\n");
    let heard = heard.lock().unwrap();
    let what: Vec<_> = heard
        .iter()
        .map(|(_, run, stream, bytes)| (*run, *stream, bytes.as_slice()))
        .collect();
    assert_eq!(
        what,
        [
            (0, OutputStream::Stdout, &b"one\n"[..]),
            (0, OutputStream::Stderr, b"two\n"),
            (1, OutputStream::Stdout, b"three\n")
        ]
    );
    assert!(
        heard[1].0 - heard[0].0 > Duration::from_millis(800),
        "heard at once: {heard:?}"
    );
}

#[test]
fn an_interrupt_ends_the_calls_at_work_and_the_cell_goes_on() {
    let ws = Workspace::new(&[("a", "1\n")]);
    let interrupt = Interrupt::new();
    let options = |interrupt: &Interrupt| CellOptions {
        interrupt: Some(interrupt.clone()),
        ..CellOptions::default()
    };
    // Fired from a thread of its own as soon as a call is at work.
    let fire = |interrupt: &Interrupt| {
        let interrupt = interrupt.clone();
        std::thread::spawn(move || {
            let begun = Instant::now();
            while interrupt.fire() == 0 && begun.elapsed() < Duration::from_secs(60) {
                std::thread::sleep(Duration::from_millis(300));
            }
        })
    };
    assert_eq!(interrupt.fire(), 0);
    let firing = fire(&interrupt);
    let begun = Instant::now();
    let response = ws.kernel.execute_cell_with(
        "const slow = await z.run('echo begun; sleep 30'); await z.edit('a', {find: '1', replacement: '2'});
         return [slow.reason, slow.stdout, (await z.run('echo again')).reason]",
        options(&interrupt),
    );
    firing.join().unwrap();
    assert_eq!(response.error, None);
    assert_eq!(
        response.value.unwrap().0,
        serde_json::json!(["cancelled", "begun\n", "natural"])
    );
    assert!(begun.elapsed() < Duration::from_secs(15));
    assert_eq!(ws.file("a"), "2\n");

    // A cell that ends because of it was ended by the host.
    let interrupt = Interrupt::new();
    let firing = fire(&interrupt);
    let response = ws.kernel.execute_cell_with(
        "const slow = await z.run('sleep 30'); if (slow.reason === 'cancelled') throw Object.assign(new Error('stop'), {name: 'Stop'})",
        options(&interrupt),
    );
    firing.join().unwrap();
    assert_eq!(
        (response.outcome, response.error.unwrap().kind),
        (Outcome::Failed, ErrorKind::Exception)
    );
}

#[test]
fn a_subscriber_hears_every_event_and_an_unplugged_one_changes_nothing() {
    let ws = Workspace::new(&[("a", "1\n")]);
    let (stays, leaves, never_reads) = (ws.kernel.events(), ws.kernel.events(), ws.kernel.events());
    let one = ws.run("await z.edit('a', {find: '1', replacement: '2'}); return 7");
    assert_eq!(leaves.next_within(Duration::ZERO).unwrap().handle, one.event.unwrap());
    drop(leaves);
    let two = ws.run("throw new Error('x')");
    ws.kernel.session().set("k", serde_json::json!(1), None).unwrap();
    let three = ws.run("return (");
    let heard: Vec<_> = std::iter::from_fn(|| stays.try_next()).collect();
    let log = ws.kernel.log(10).unwrap();
    assert_eq!(heard.len(), 4);
    for (heard, logged) in heard.iter().rev().zip(&log) {
        assert_eq!(heard.handle, logged.handle);
        assert_eq!(heard.event, ws.kernel.event(&logged.handle).unwrap());
    }
    assert_eq!(
        (heard[1].handle, heard[3].handle),
        (two.event.unwrap(), three.event.unwrap())
    );
    assert_eq!(three.error.unwrap().phase, Phase::Rejected);
    // A queue that is full loses events for its subscriber alone.
    for n in 0..1100 {
        ws.kernel.session().set("n", serde_json::json!(n), None).unwrap();
    }
    assert_eq!(never_reads.lost(), 1104 - 1024);
    assert_eq!(ws.run("return 1").outcome, Outcome::Completed);
}
