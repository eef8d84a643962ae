//! Parallel work that ends with the call.
//!
//! An idle kernel holds no threads, so every call makes its own and joins them. Their stacks are large, because walks
//! over syntax trees recurse.

use std::sync::atomic::{AtomicUsize, Ordering};

use zero_contracts::{CancelToken, Error, ErrorKind};

/// Bytes of a worker's stack: address space, not memory, until it is used.
const STACK: usize = 64 << 20;

/// Runs `work(state, index)` for every index below `count` on up to `threads` threads and returns the results in order.
///
/// # Errors
/// The first error in order of the indices that were worked on; `cancelled` and `deadline` from the token.
pub fn map<S, R: Send>(
    count: usize,
    threads: usize,
    token: &CancelToken,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Error> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let next = AtomicUsize::new(0);
    let run = || -> Result<Vec<(usize, R)>, Error> {
        let (mut state, mut done) = (state(), Vec::new());
        loop {
            token.check()?;
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return Ok(done);
            }
            match work(&mut state, index) {
                Ok(result) => done.push((index, result)),
                Err(error) => {
                    next.store(count, Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
    };
    let parts = std::thread::scope(|scope| -> Result<Vec<_>, Error> {
        let mut workers = Vec::new();
        for _ in 0..threads.clamp(1, count) {
            let worker = std::thread::Builder::new()
                .name("graphzero".into())
                .stack_size(STACK)
                .spawn_scoped(scope, run);
            match worker {
                Ok(worker) => workers.push(worker),
                // Fewer threads do the same work; without any there is nobody to do it.
                Err(error) if workers.is_empty() => return Err(Error::from_io(&error, "cannot start a thread")),
                Err(_) => break,
            }
        }
        workers
            .into_iter()
            .map(|worker| {
                worker
                    .join()
                    .unwrap_or_else(|_| Err(Error::new(ErrorKind::Internal, "a worker panicked")))
            })
            .collect()
    })?;
    let mut all: Vec<(usize, R)> = parts.into_iter().flatten().collect();
    all.sort_unstable_by_key(|(index, _)| *index);
    Ok(all.into_iter().map(|(_, result)| result).collect())
}

/// Runs one piece of work on a large stack.
///
/// # Errors
/// The error of the work; `internal` if it panicked.
pub fn on_large_stack<R: Send>(token: &CancelToken, work: impl Fn() -> Result<R, Error> + Sync) -> Result<R, Error> {
    let mut results = map(1, 1, token, || (), |(), _| work())?;
    results
        .pop()
        .ok_or_else(|| Error::new(ErrorKind::Internal, "no result"))
}
