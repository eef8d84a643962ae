//! Running a frame in a test.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use zero_contracts::{CancelToken, Error, ErrorKind, Location};
use zerostack::frame::{CallHandler, CallReply, CallRequest, FrameOutcome, FrameSpec, run};

type Answer = Pin<Box<dyn Future<Output = Result<CallReply, Error>> + Send>>;

/// A handler that a test writes as a closure.
pub struct Handler<F>(pub F);

impl<F, Fut> CallHandler for Handler<F>
where
    F: Fn(CallRequest) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<CallReply, Error>> + Send + 'static,
{
    fn call(&self, request: CallRequest) -> Answer {
        Box::pin((self.0)(request))
    }
}

/// Answers every call with `{"name": …, "arguments": …}`, and remembers it.
#[derive(Clone, Default)]
pub struct Echo(pub Arc<Mutex<Vec<(String, String)>>>, Option<&'static str>);

impl Echo {
    /// Fails the calls of one name with `io`.
    pub fn failing(name: &'static str) -> Self {
        Self(Arc::default(), Some(name))
    }
}

impl CallHandler for Echo {
    fn call(&self, request: CallRequest) -> Answer {
        self.0
            .lock()
            .unwrap()
            .push((request.name.to_owned(), request.arguments.clone()));
        if let Some(name) = self.1.filter(|name| *name == request.name) {
            return Box::pin(async move { Err(Error::new(ErrorKind::Io, format!("{name} is told to fail"))) });
        }
        let json = format!("{{\"name\":\"{}\",\"arguments\":{}}}", request.name, request.arguments);
        Box::pin(async move { Ok(CallReply::json(json)) })
    }
}

/// A spec with the default budgets.
pub fn spec(source: &str) -> FrameSpec {
    FrameSpec {
        source: source.to_owned(),
        ..FrameSpec::default()
    }
}

/// Runs a cell whose calls are echoed.
pub fn cell(source: &str) -> FrameOutcome {
    run(spec(source), Arc::new(Echo::default()), &CancelToken::new())
}

/// Runs a cell whose calls are echoed, with so many milliseconds.
pub fn cell_within(source: &str, wall_ms: u64) -> FrameOutcome {
    let mut spec = spec(source);
    spec.budgets.wall = Duration::from_millis(wall_ms);
    run(spec, Arc::new(Echo::default()), &CancelToken::new())
}

/// The value a cell gives.
pub fn value(source: &str) -> serde_json::Value {
    let outcome = cell(source);
    match outcome.settled {
        Ok(Some(json)) => serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error} in {json}")),
        other => panic!("{source}\ngave {other:?}; console {:?}", outcome.console),
    }
}

/// The error a cell gives.
pub fn error(source: &str) -> Error {
    match cell(source).settled {
        Err(error) => error,
        other => panic!("{source}\ngave {other:?}"),
    }
}

/// The kind, the place and the detail of the error a cell gives.
pub fn failure(source: &str) -> (ErrorKind, Option<(u64, u64)>, String) {
    let error = error(source);
    (
        error.kind,
        error.location.map(|Location { line, column }| (line, column)),
        error.detail,
    )
}

/// Asserts that the next cell of this process is a normal one.
pub fn the_next_cell_is_normal() {
    assert_eq!(
        value("return [1, (await z.read('a')).name]"),
        serde_json::json!([1, "read"])
    );
}

/// A handler that never answers.
pub fn silent() -> Arc<dyn CallHandler> {
    Arc::new(Handler(|_| std::future::pending()))
}

/// A handler that sleeps on the blocking pool of the frame before it answers.
pub fn slow(wait: Duration) -> Arc<dyn CallHandler> {
    Arc::new(Handler(move |_| async move {
        tokio::task::spawn_blocking(move || std::thread::sleep(wait))
            .await
            .unwrap();
        Ok(CallReply::json("1"))
    }))
}
