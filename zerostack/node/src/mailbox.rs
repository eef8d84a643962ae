//! The calls of one Node environment: their threads, their cancellation, and the messages they send to its event loop.
//!
//! Owns the one function of the environment that other threads may call. After [`Mailbox::close`] it is gone, and whatever
//! still runs sends into the void: nothing touches an environment that has ended.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use napi::bindgen_prelude::{FnArgs, Function};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{Env, Status};
use zerostack::Interrupt;
use zerostack::contracts::{CancelToken, Error, ErrorKind};

/// What a message is about; the number is known to `index.js`.
#[derive(Clone, Copy, Debug)]
pub enum Topic {
    /// A call has ended well: the text is its answer.
    Answered = 0,
    /// A call has ended badly: the text is the error.
    Refused = 1,
    /// A part of what a call tells while it runs.
    Told = 2,
    /// A question to JavaScript; the number is that of the question.
    Asked = 3,
}

/// The text is JSON.
struct Message(Topic, u32, String);

/// The arguments that JavaScript gets: topic, number, text.
type Arguments = FnArgs<(u32, u32, String)>;

/// Weak: it does not keep the event loop alive unless [`Mailbox::hold`] says so.
type Deliver = ThreadsafeFunction<Message, (), Arguments, Status, false, true>;

/// How often a thread that waits for JavaScript looks at its token.
const POLL: Duration = Duration::from_millis(5);

/// Calls of one environment. All clones of the `Arc` are one mailbox.
pub struct Mailbox {
    deliver: Mutex<Option<Deliver>>,
    work: Mutex<Work>,
    less: Condvar,
}

/// Takes the answer to a question: what JavaScript gave, or what it threw. Dropped when there will be none.
type Give = Box<dyn FnOnce(Result<String, String>) + Send>;

#[derive(Default)]
struct Work {
    closed: bool,
    calls: HashMap<u32, (CancelToken, Interrupt)>,
    questions: HashMap<u32, Give>,
    asked: u32,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change under these locks is one step.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Mailbox {
    /// Makes the mailbox of an environment; `deliver` gets every message on the event loop and must not throw.
    ///
    /// # Errors
    /// Those of N-API.
    pub fn new(deliver: &Function<'_, Arguments, ()>) -> napi::Result<Self> {
        let deliver = deliver
            .build_threadsafe_function::<Message>()
            .weak::<true>()
            .build_callback(|context| {
                let Message(topic, number, text) = context.value;
                Ok(FnArgs::from((topic as u32, number, text)))
            })?;
        Ok(Self {
            deliver: Mutex::new(Some(deliver)),
            work: Mutex::default(),
            less: Condvar::new(),
        })
    }

    /// Says whether the event loop is to stay alive. Called on its thread.
    ///
    /// # Errors
    /// Those of N-API.
    #[expect(
        deprecated,
        reason = "clones are for threads; what is meant here is the reference of the event loop"
    )]
    pub fn hold(&self, env: &Env, on: bool) -> napi::Result<()> {
        match &mut *lock(&self.deliver) {
            Some(deliver) if on => deliver.refer(env),
            Some(deliver) => deliver.unref(env),
            None => Ok(()),
        }
    }

    /// Starts a call on a thread of its own; it ends with one message, [`Topic::Answered`] or [`Topic::Refused`].
    pub fn start(self: &Arc<Self>, number: u32, work: impl FnOnce(&Call) -> Result<String, Error> + Send + 'static) {
        let call = Call {
            mailbox: Arc::clone(self),
            number,
            cancel: CancelToken::new(),
            interrupt: Interrupt::new(),
        };
        {
            let mut work = lock(&self.work);
            if work.closed {
                return;
            }
            work.calls.insert(number, (call.cancel.clone(), call.interrupt.clone()));
        }
        let refused = {
            let running = Running(Arc::clone(self), number);
            std::thread::Builder::new().name("zero-call".into()).spawn(move || {
                let _running = running;
                let done = catch_unwind(AssertUnwindSafe(|| work(&call)))
                    .unwrap_or_else(|_| Err(Error::new(ErrorKind::Internal, "the kernel failed inside this call")));
                match done {
                    Ok(text) => call.mailbox.post(Topic::Answered, number, text),
                    Err(error) => call.mailbox.post(Topic::Refused, number, error_text(&error)),
                }
            })
        };
        if let Err(why) = refused {
            let error = Error::new(
                ErrorKind::Busy,
                format!("the system gave no thread for the call: {why}"),
            );
            self.post(Topic::Refused, number, error_text(&error));
        }
    }

    /// Cancels a call, if it still runs.
    pub fn cancel(&self, number: u32) {
        if let Some((token, _)) = lock(&self.work).calls.get(&number) {
            token.cancel();
        }
    }

    /// Ends what a cell waits for, and lets the cell go on; returns how many of its calls were at work.
    pub fn interrupt(&self, number: u32) -> usize {
        let work = lock(&self.work);
        work.calls.get(&number).map_or(0, |(_, interrupt)| interrupt.fire())
    }

    /// Sends a message, unless the environment has ended.
    pub fn post(&self, topic: Topic, number: u32, text: String) {
        // The lock is held across the call, so that `close` cannot take the function away meanwhile.
        if let Some(deliver) = &*lock(&self.deliver) {
            deliver.call(Message(topic, number, text), ThreadsafeFunctionCallMode::NonBlocking);
        }
    }

    /// Asks JavaScript and waits on the calling thread, which is not the event loop's.
    ///
    /// # Errors
    /// The outer one when there is no answer any more: `cancelled` and `deadline` from the token, `cancelled` when the
    /// environment has ended. The inner one is what JavaScript threw.
    pub fn ask(&self, question: &serde_json::Value, token: &CancelToken) -> Result<Result<String, String>, Error> {
        let (sender, answer) = channel();
        let number = self.send_question(
            question,
            Box::new(move |given| {
                // Whoever asked may have stopped waiting this very moment.
                let _ = sender.send(given);
            }),
        )?;
        loop {
            match answer.recv_timeout(POLL) {
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Disconnected) => return Err(gone()),
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(why) = token.check() {
                        lock(&self.work).questions.remove(&number);
                        return Err(why);
                    }
                }
            }
        }
    }

    /// Asks JavaScript without holding up a thread; the future may be driven by any executor.
    ///
    /// # Errors
    /// The outer one is `cancelled` when the environment has ended. The inner one is what JavaScript threw.
    pub async fn ask_later(&self, question: &serde_json::Value) -> Result<Result<String, String>, Error> {
        let (sender, answer) = tokio::sync::oneshot::channel();
        self.send_question(
            question,
            Box::new(move |given| {
                // Whoever asked may have stopped waiting this very moment.
                let _ = sender.send(given);
            }),
        )?;
        answer.await.map_err(|_| gone())
    }

    fn send_question(&self, question: &serde_json::Value, give: Give) -> Result<u32, Error> {
        let number = {
            let mut work = lock(&self.work);
            if work.closed {
                return Err(gone());
            }
            work.asked = work.asked.wrapping_add(1);
            let number = work.asked;
            work.questions.insert(number, give);
            number
        };
        self.post(Topic::Asked, number, question.to_string());
        Ok(number)
    }

    /// Gives the answer to a question, if anybody still waits for it.
    pub fn answer(&self, number: u32, answer: Result<String, String>) {
        let give = lock(&self.work).questions.remove(&number);
        if let Some(give) = give {
            give(answer);
        }
    }

    /// Cancels every call, takes the function of the environment away and waits until all calls have ended, at most until
    /// `patience` is over. Whatever still runs then finds nobody to tell.
    pub fn close(&self, patience: Duration) {
        let mut work = lock(&self.work);
        work.closed = true;
        work.questions.clear();
        for (token, _) in work.calls.values() {
            token.cancel();
        }
        drop(work);
        drop(lock(&self.deliver).take());
        let deadline = Instant::now() + patience;
        let mut work = lock(&self.work);
        while !work.calls.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            work = self
                .less
                .wait_timeout(work, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

/// One call while it runs.
pub struct Call {
    /// Where it tells what it has to tell.
    pub mailbox: Arc<Mailbox>,
    /// Its number.
    pub number: u32,
    /// Ends it.
    pub cancel: CancelToken,
    /// Ends what its cell waits for.
    pub interrupt: Interrupt,
}

/// Stands in the list of calls until the thread is about to end.
struct Running(Arc<Mailbox>, u32);

impl Drop for Running {
    fn drop(&mut self) {
        lock(&self.0.work).calls.remove(&self.1);
        self.0.less.notify_all();
    }
}

fn gone() -> Error {
    Error::new(ErrorKind::Cancelled, "the Node environment has ended")
}

/// An error as JSON.
pub fn error_text(error: &Error) -> String {
    serde_json::to_string(error).unwrap_or_else(|_| r#"{"kind":"internal","detail":"","retryable":false}"#.into())
}
