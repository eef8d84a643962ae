//! The channel `command`: a program per effect, owned by a supervisor until its whole tree is gone.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use zero_contracts::{CancelToken, Error, Result};
use zero_supervisor as supervisor;
use zero_supervisor::{EndReason, Io, Processes, Spec, Stdin, Termination};

use super::channel::{ChannelFuture, DispatchError, EffectCall, EffectChannel, Probed};
use crate::record::canonical_json;

/// The exit code by which a command says that it certainly did nothing and may be run again: `EX_TEMPFAIL` of sysexits.
const NOT_SENT: i32 = 75;

/// Bytes of standard output that become evidence.
const EVIDENCE_BYTES: usize = 16 * 1024;

/// How long trees of a dispatcher that died are waited for before nothing is known.
const LEFT_BEHIND: Duration = Duration::from_secs(10);

/// Runs a program per effect, after the commit.
///
/// The program gets the payload as canonical JSON on its standard input, and the variables `ZEROSTACK_EFFECT` (the handle),
/// `ZEROSTACK_EFFECT_KEY`, `ZEROSTACK_EFFECT_EPOCH` and `ZEROSTACK_EFFECT_ATTEMPT`. Exit code 0 means done, and the
/// beginning of its standard output is the evidence; 75 (`EX_TEMPFAIL`) means that it certainly did nothing; a program that
/// cannot be started did nothing; anything else is unknown.
///
/// The probe gets the same. Its exit code 0 means that the effect was done (its standard output is the evidence), 1 that it
/// was not and will not be, anything else that it cannot tell. Before it runs, whatever a dead dispatcher's program left
/// running is ended.
///
/// It runs as the host, unconfined: what it may do is the host's grant.
#[derive(Clone, Debug)]
pub struct CommandChannel {
    argv: Vec<String>,
    probe: Option<Vec<String>>,
    /// Directory to run in; without it the channel's own.
    pub cwd: Option<PathBuf>,
    /// Variables beside the allow-listed ones of the host.
    pub env: BTreeMap<String, String>,
    /// Time it may take; without it as long as the channel's answer is waited for.
    pub timeout: Option<Duration>,
    /// The supervisor's binary; without it, it is looked for beside the current executable.
    pub supervisor: Option<PathBuf>,
}

/// What a program came to.
enum Ran {
    NotStarted(String),
    Exited(i32, Vec<u8>),
    Unclear(String),
}

impl CommandChannel {
    /// A channel that runs this program with these arguments.
    ///
    /// # Errors
    /// `invalid_input` if there is no program.
    pub fn new(argv: impl IntoIterator<Item = impl Into<String>>) -> Result<Self> {
        Ok(Self {
            argv: check(argv, "argv")?,
            probe: None,
            cwd: None,
            env: BTreeMap::new(),
            timeout: None,
            supervisor: None,
        })
    }

    /// Adds the program that finds out whether an effect was done.
    ///
    /// # Errors
    /// `invalid_input` if there is no program.
    pub fn with_probe(mut self, argv: impl IntoIterator<Item = impl Into<String>>) -> Result<Self> {
        self.probe = Some(check(argv, "probe")?);
        Ok(self)
    }

    fn run(&self, argv: &[String], effect: &EffectCall, cancel: &CancelToken) -> Ran {
        let not_started = |e: &dyn std::fmt::Display| Ran::NotStarted(e.to_string());
        let program = match supervisor::locate::locate(self.supervisor.as_deref()) {
            Ok(program) => program,
            Err(e) => return not_started(&e),
        };
        let payload = match canonical_json(&effect.payload) {
            Ok(payload) => payload,
            Err(e) => return not_started(&e),
        };
        let mut spec = Spec::new(argv, self.cwd.as_ref().unwrap_or(&effect.directory));
        let own = [
            ("ZEROSTACK_EFFECT", effect.handle.to_string()),
            ("ZEROSTACK_EFFECT_KEY", effect.key.clone()),
            ("ZEROSTACK_EFFECT_EPOCH", effect.epoch.to_string()),
            ("ZEROSTACK_EFFECT_ATTEMPT", effect.attempt.to_string()),
        ];
        spec.env
            .extend(self.env.iter().map(|(name, value)| (name.into(), value.into())));
        spec.env
            .extend(own.map(|(name, value)| (OsString::from(name), OsString::from(value))));
        spec.stdin = Stdin::Bytes(payload);
        spec.timeout = self.timeout;
        spec.marker_dir = Some(effect.directory.clone());
        let running = match Processes::new(program).spawn(spec) {
            Ok(running) => running,
            Err(e) => return not_started(&e),
        };
        let (mut stdout, mut stderr) = (Head::default(), Head::default());
        let mut poll = || cancel.check().is_err().then_some(EndReason::Cancelled);
        let outcome = running.drive(Io {
            stdout: &mut stdout,
            stderr: &mut stderr,
            on_output: None,
            poll: Some(&mut poll),
        });
        let said = String::from_utf8_lossy(&stderr.0).trim().to_owned();
        match outcome.termination {
            Termination::SpawnFailed { detail, .. } => Ran::NotStarted(detail),
            Termination::Exited { code } if outcome.reason == EndReason::Natural => Ran::Exited(code, stdout.0),
            other => Ran::Unclear(format!("{other:?}, reason {:?}; {said}", outcome.reason)),
        }
    }

    fn send(&self, effect: &EffectCall, cancel: &CancelToken) -> std::result::Result<Value, DispatchError> {
        match self.run(&self.argv, effect, cancel) {
            Ran::NotStarted(why) => Err(DispatchError::NotSent(why)),
            Ran::Exited(0, stdout) => Ok(evidence(&stdout)),
            Ran::Exited(NOT_SENT, stdout) => Err(DispatchError::NotSent(format!(
                "exit code {NOT_SENT}: {}",
                String::from_utf8_lossy(&stdout).trim()
            ))),
            Ran::Exited(code, _) => Err(DispatchError::Unknown(format!("exit code {code}"))),
            Ran::Unclear(why) => Err(DispatchError::Unknown(why)),
        }
    }

    fn ask(&self, argv: &[String], effect: &EffectCall, cancel: &CancelToken) -> Probed {
        if let Err(why) = end_left_behind(&effect.directory, cancel) {
            return Probed::Unknown(why);
        }
        match self.run(argv, effect, cancel) {
            Ran::Exited(0, stdout) => Probed::Sent(evidence(&stdout)),
            Ran::Exited(1, _) => Probed::NotSent,
            Ran::Exited(code, _) => Probed::Unknown(format!("the probe's exit code is {code}")),
            Ran::NotStarted(why) | Ran::Unclear(why) => Probed::Unknown(format!("the probe: {why}")),
        }
    }
}

fn check(argv: impl IntoIterator<Item = impl Into<String>>, field: &str) -> Result<Vec<String>> {
    let argv: Vec<String> = argv.into_iter().map(Into::into).collect();
    if argv.first().is_none_or(String::is_empty) || argv.iter().any(|argument| argument.contains('\0')) {
        return Err(Error::invalid("a command channel needs a program, and arguments without NUL").with_path(field));
    }
    Ok(argv)
}

fn evidence(stdout: &[u8]) -> Value {
    json!({ "exitCode": 0, "stdout": String::from_utf8_lossy(stdout) })
}

/// Ends the trees of programs whose dispatcher died: only then is a probe's "not sent" final.
fn end_left_behind(directory: &Path, cancel: &CancelToken) -> std::result::Result<(), String> {
    let deadline = Instant::now() + LEFT_BEHIND;
    loop {
        let trees = supervisor::marker::blocking(directory).map_err(|e| format!("the channel's markers: {e}"))?;
        if trees.is_empty() {
            return Ok(());
        }
        cancel.check().map_err(|e| e.to_string())?;
        if Instant::now() >= deadline {
            return Err(format!("{} process tree(s) of an earlier call still live", trees.len()));
        }
        trees.iter().for_each(supervisor::marker::LiveTree::kill);
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Keeps the beginning of a stream.
#[derive(Default)]
struct Head(Vec<u8>);

impl std::io::Write for Head {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let room = EVIDENCE_BYTES.saturating_sub(self.0.len());
        self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Runs blocking work on a thread of its own, whatever executor polls the future.
fn apart<T: Send + 'static>(lost: T, work: impl FnOnce() -> T + Send + 'static) -> ChannelFuture<'static, T> {
    let (tell, told) = tokio::sync::oneshot::channel();
    let started = std::thread::Builder::new()
        .name("zerostack-command".into())
        .spawn(move || tell.send(work()));
    Box::pin(async move {
        match started {
            Ok(_) => told.await.unwrap_or(lost),
            Err(_) => lost,
        }
    })
}

impl EffectChannel for CommandChannel {
    fn dispatch<'a>(
        &'a self,
        effect: &'a EffectCall,
        cancel: &'a CancelToken,
    ) -> ChannelFuture<'a, std::result::Result<Value, DispatchError>> {
        let (channel, effect, cancel) = (self.clone(), effect.clone(), cancel.clone());
        let guard = CancelOnDrop(cancel.child(None));
        let token = guard.0.clone();
        let lost = Err(DispatchError::Unknown("the thread of the command is gone".into()));
        let work = apart(lost, move || channel.send(&effect, &token));
        Box::pin(async move {
            let _guard = guard;
            work.await
        })
    }

    fn probe<'a>(&'a self, effect: &'a EffectCall, cancel: &'a CancelToken) -> Option<ChannelFuture<'a, Probed>> {
        let argv = Arc::new(self.probe.clone()?);
        let (channel, effect) = (self.clone(), effect.clone());
        let guard = CancelOnDrop(cancel.child(None));
        let token = guard.0.clone();
        let lost = Probed::Unknown("the thread of the probe is gone".into());
        let work = apart(lost, move || channel.ask(&argv, &effect, &token));
        Some(Box::pin(async move {
            let _guard = guard;
            work.await
        }))
    }
}

/// Who no longer waits for a program ends it.
struct CancelOnDrop(CancelToken);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
