//! Waits for a channel's answer on the calling thread, renewing meanwhile what the caller holds.

use std::future::Future;
use std::time::Duration;

/// Drives a future to its end, at most for `limit`; none if it did not end. `tick` is called every `every`.
///
/// It runs on a thread of its own that ends with it, so the caller may itself be inside an async runtime.
pub(super) fn drive<T: Send>(
    future: impl Future<Output = T> + Send,
    limit: Duration,
    every: Duration,
    tick: &mut (dyn FnMut() + Send),
) -> std::io::Result<Option<T>> {
    std::thread::scope(|scope| {
        let driver = std::thread::Builder::new()
            .name("zerostack-effect".into())
            .spawn_scoped(scope, || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                let ended = runtime.block_on(async {
                    let mut future = std::pin::pin!(future);
                    let deadline = tokio::time::Instant::now() + limit;
                    loop {
                        let nap = tokio::time::Instant::now() + every;
                        match tokio::time::timeout_at(nap.min(deadline), future.as_mut()).await {
                            Ok(answer) => return Some(answer),
                            Err(_) if tokio::time::Instant::now() >= deadline => return None,
                            Err(_) => tick(),
                        }
                    }
                });
                // Whatever the channel left on this runtime is not waited for.
                runtime.shutdown_background();
                Ok(ended)
            })?;
        match driver.join() {
            Ok(ended) => ended,
            // The channel's own defect: nobody knows what it did.
            Err(_) => Ok(None),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ticks_while_it_waits_and_gives_up_at_its_limit() {
        let mut ticks = 0;
        let millis = Duration::from_millis;
        let slow = async {
            tokio::time::sleep(millis(120)).await;
            7
        };
        let ended = drive(slow, millis(5000), millis(20), &mut || ticks += 1).unwrap();
        assert_eq!(ended, Some(7));
        assert!(ticks >= 2, "{ticks}");
        let never = std::future::pending::<()>();
        assert_eq!(drive(never, millis(30), millis(10), &mut || {}).unwrap(), None);
    }

    #[test]
    fn a_panic_of_a_channel_is_an_answer_that_never_came() {
        let panics = async { panic!("on purpose") };
        let ended: Option<()> = drive(panics, Duration::from_secs(1), Duration::from_secs(1), &mut || {}).unwrap();
        assert_eq!(ended, None);
    }

    #[test]
    fn a_caller_inside_a_runtime_may_wait() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let ended =
            runtime.block_on(async { drive(async { 1 }, Duration::from_secs(1), Duration::from_secs(1), &mut || {}) });
        assert_eq!(ended.unwrap(), Some(1));
    }
}
