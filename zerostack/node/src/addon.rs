//! What `index.js` sees: one [`Addon`] for each environment, and its kernels.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use napi::Env;
use napi::bindgen_prelude::{FnArgs, Function};
use napi_derive::napi;

use crate::host::Host;
use crate::mailbox::{Mailbox, error_text};
use crate::upkeep;

/// How long the end of an environment waits for its calls: the grace of a command, and what it takes to prove it gone.
const PATIENCE: Duration = Duration::from_secs(3);

/// Returns the version of this library; `index.js` refuses another one than its own.
#[napi]
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Returns what a model is told about cells.
#[napi]
pub fn instructions() -> &'static str {
    zerostack::instructions()
}

/// Returns the JSON Schemas of requests, responses and events, as JSON text.
#[napi]
pub fn schemas() -> String {
    zerostack::schemas().to_string()
}

/// The kernels of one Node environment.
#[napi]
pub struct Addon {
    all: All,
    supervisor: PathBuf,
}

/// What ends with the environment.
#[derive(Clone)]
struct All {
    mailbox: Arc<Mailbox>,
    hosts: Arc<Mutex<Vec<Weak<Host>>>>,
}

impl All {
    /// Ends every call, then every kernel. Doing so again does nothing.
    fn close(&self) {
        self.mailbox.close(PATIENCE);
        for host in self.hosts.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            if let Some(host) = host.upgrade() {
                host.close();
            }
        }
    }
}

#[napi]
impl Addon {
    /// Makes it; `deliver(topic, number, text)` gets every message on the event loop and must not throw.
    #[napi(constructor)]
    pub fn new(
        env: Env,
        deliver: Function<'_, FnArgs<(u32, u32, String)>, ()>,
        supervisor: String,
    ) -> napi::Result<Self> {
        let mailbox = Arc::new(Mailbox::new(&deliver)?);
        let all = All {
            mailbox,
            hosts: Arc::default(),
        };
        // Hooks run in reverse order: this one before the end of the mailbox's function, which was made earlier. A worker
        // that is terminated comes here; `process.exit` runs no hooks, but `index.js` hears of it.
        env.add_env_cleanup_hook(all.clone(), |all| all.close())?;
        Ok(Self {
            all,
            supervisor: supervisor.into(),
        })
    }

    /// Makes a kernel that is opened by its first call. Returns an error's JSON text in place of a kernel for options that
    /// are refused.
    #[napi]
    pub fn kernel(&self, options: String, number: u32) -> napi::Either<Kernel, String> {
        match Host::new(&options, &self.supervisor, &self.all.mailbox, number) {
            Ok(host) => napi::Either::A(self.keep(host)),
            Err(error) => napi::Either::B(error_text(&error)),
        }
    }

    /// Starts a call. Its answer is the message with its number.
    #[napi]
    pub fn call(&self, number: u32, kernel: &Kernel, method: String, arguments: String) {
        let host = Arc::clone(&kernel.0);
        self.all
            .mailbox
            .start(number, move |call| host.call(call, &method, &arguments));
    }

    /// Starts a call that needs no kernel. Its answer is the message with its number.
    #[napi]
    pub fn call_alone(&self, number: u32, method: String, arguments: String) {
        self.all
            .mailbox
            .start(number, move |_| upkeep::call_alone(&method, &arguments));
    }

    /// Takes the kernel that a call made (`fork`), once.
    #[napi]
    pub fn made(&self, kernel: &Kernel, number: u32) -> Option<Kernel> {
        kernel.0.take_made(number).map(|host| self.keep(host))
    }

    /// Cancels a call, if it still runs.
    #[napi]
    pub fn cancel(&self, number: u32) {
        self.all.mailbox.cancel(number);
    }

    /// Ends what a cell waits for, and lets the cell go on; returns how many of its calls were at work.
    #[napi]
    pub fn interrupt(&self, number: u32) -> u32 {
        u32::try_from(self.all.mailbox.interrupt(number)).unwrap_or(u32::MAX)
    }

    /// Answers a question: JSON text, or what went wrong.
    #[napi]
    pub fn answer(&self, number: u32, well: bool, text: String) {
        self.all.mailbox.answer(number, if well { Ok(text) } else { Err(text) });
    }

    /// Says whether the event loop is to stay alive.
    #[napi]
    pub fn hold(&self, env: Env, on: bool) -> napi::Result<()> {
        self.all.mailbox.hold(&env, on)
    }

    /// Ends everything, because the environment ends; blocks until it has ended, for some seconds at most.
    #[napi]
    pub fn close(&self) {
        self.all.close();
    }

    fn keep(&self, host: Host) -> Kernel {
        let host = Arc::new(host);
        let mut hosts = self.all.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.retain(|host| host.strong_count() > 0);
        hosts.push(Arc::downgrade(&host));
        Kernel(host)
    }
}

/// One kernel. It closes when JavaScript has forgotten it and its last call has ended.
#[napi]
pub struct Kernel(Arc<Host>);
