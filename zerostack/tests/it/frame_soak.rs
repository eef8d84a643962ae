//! Many frames in a row and at once: what a process uses levels off.

use std::sync::Arc;
use std::time::Duration;

use zero_contracts::CancelToken;
use zerostack::frame::{FrameBudgets, run};

use crate::frame_support::{Echo, slow, spec};

fn status(field: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn threads_named(prefix: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    tasks
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok())
        .filter(|name| name.starts_with(prefix))
        .count()
}

/// Cells of every way to end.
fn batch(n: usize) {
    for i in 0..n {
        let (source, wall) = match i % 8 {
            0 => ("for (;;) {}", 5),
            1 => ("await z.read('a'); throw new Error('x')", 5000),
            2 => ("syntax error", 5000),
            3 => ("return new Uint8Array(1e6).length", 5000),
            4 => ("await new Promise(() => {})", 5000),
            5 => ("for (let i = 0; i < 50; i++) z.read('a'); return 1", 5000),
            _ => ("console.log('x'); return {a: (await z.read('a')).name}", 5000),
        };
        let mut spec = spec(source);
        spec.budgets = FrameBudgets {
            wall: Duration::from_millis(wall),
            ..FrameBudgets::default()
        };
        let outcome = run(spec, Arc::new(Echo::default()), &CancelToken::new());
        assert!(!outcome.given_up);
    }
}

#[test]
fn five_hundred_frames_leave_nothing_behind() {
    batch(100);
    let (rss, fds) = (status("VmRSS:"), descriptors());
    batch(500);
    let grown = status("VmRSS:").saturating_sub(rss);
    assert!(grown < 12 << 10, "{grown} KiB more after 500 frames");
    assert!(descriptors() <= fds + 2, "{} descriptors, {fds} before", descriptors());
    // Other tests of this process may run frames meanwhile (not under nextest).
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while threads_named("zero-frame") > 0
        && std::time::Instant::now() < deadline
        && std::env::var_os("NEXTEST").is_none()
    {
        std::thread::sleep(Duration::from_millis(50));
    }
    if std::env::var_os("NEXTEST").is_some() {
        assert_eq!(threads_named("zero-frame"), 0);
        // The main thread, the test's thread, and V8's one helper.
        assert!(status("Threads:") <= 3, "{} threads", status("Threads:"));
    }
}

#[test]
fn many_frames_at_once() {
    std::thread::scope(|scope| {
        for i in 0..16 {
            scope.spawn(move || {
                let source = format!("const a = await Promise.all([z.read({i}), z.read({i})]); return a.length + {i}");
                let outcome = run(spec(&source), slow(Duration::from_millis(20)), &CancelToken::new());
                assert_eq!(outcome.settled.unwrap().unwrap(), (i + 2).to_string());
            });
        }
    });
}

/// `cargo xtask soak frame`; `ZEROSTACK_FRAMES` scales it.
#[test]
#[ignore = "minutes long"]
fn frames_for_a_long_time() {
    let frames = std::env::var("ZEROSTACK_FRAMES")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(20_000);
    batch(1000);
    let rss = status("VmRSS:");
    batch(frames);
    let grown = status("VmRSS:").saturating_sub(rss);
    println!("{frames} frames: {grown} KiB more than after the first thousand");
    assert!(grown < 32 << 10, "{grown} KiB");
}
