//! Channels that tell the truth about what they did, stores of both kinds, and faults at every step of a dispatch.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use zero_contracts::{CancelToken, EffectRecord, EffectState, Epoch, Error, ErrorKind, Handle, Result};
use zerostack::outbox::{
    ChannelFuture, DispatchError, EffectCall, EffectChannel, EffectFilter, EffectGate, EffectStep, FleetStore, Probed,
};
use zerostack::{Effects, KernelConfig, ZeroKernel};

use crate::hub_support::{Workspace, config};

/// Which store the kernels of a test share; none is SQLite in the workspace's own store.
#[derive(Clone, Default)]
pub struct Backend(pub Option<Arc<dyn Fn() -> Arc<dyn FleetStore> + Send + Sync>>);

impl Backend {
    /// A store that is not of a kernel, in `directory` if it is SQLite.
    pub fn store(&self, directory: &Path) -> Arc<dyn FleetStore> {
        match &self.0 {
            Some(connect) => connect(),
            None => Arc::new(
                zerostack::outbox::sqlite::open(directory, zero_contracts::files::Durability::Process).unwrap(),
            ),
        }
    }

    /// Effects that lie there.
    pub fn effects(&self) -> Effects {
        Effects {
            store: self.0.as_ref().map(|connect| connect()),
            ..Effects::default()
        }
    }
}

/// How a channel behaves when it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Manner {
    /// Does it and says so.
    #[default]
    Does,
    /// Does nothing and says so.
    Refuses,
    /// Does it and says that it does not know.
    DoesUnsure,
    /// Does nothing and says that it does not know.
    RefusesUnsure,
    /// Does it and never answers.
    DoesHangs,
    /// Does it and panics.
    DoesPanics,
}

/// A receiver outside: what it did, by handle, with the epoch of the call.
#[derive(Default)]
pub struct Outside {
    pub done: Mutex<Vec<(Handle, Epoch)>>,
    pub calls: AtomicUsize,
    pub manner: Mutex<Manner>,
    /// Whether its channel has a probe, and whether that knows.
    pub probe: Mutex<Option<bool>>,
}

impl Outside {
    /// A receiver whose probe knows.
    pub fn honest() -> Arc<Self> {
        let outside = Self::default();
        *outside.probe.lock().unwrap() = Some(true);
        Arc::new(outside)
    }

    /// A receiver that nobody can ask.
    pub fn blind() -> Arc<Self> {
        Arc::default()
    }

    pub fn manner(&self, manner: Manner) {
        *self.manner.lock().unwrap() = manner;
    }

    /// How often each effect was done.
    pub fn times(&self) -> BTreeMap<Handle, usize> {
        let mut times = BTreeMap::new();
        for (handle, _) in self.done.lock().unwrap().iter() {
            *times.entry(*handle).or_default() += 1;
        }
        times
    }
}

/// The channel to an [`Outside`].
pub struct ToOutside(pub Arc<Outside>);

impl EffectChannel for ToOutside {
    fn check(&self, _key: &str, payload: &Value) -> Result<()> {
        match payload.get("bad") {
            Some(_) => Err(Error::invalid("a bad payload").with_path("payload.bad")),
            None => Ok(()),
        }
    }

    fn dispatch<'a>(
        &'a self,
        effect: &'a EffectCall,
        _cancel: &'a CancelToken,
    ) -> ChannelFuture<'a, std::result::Result<Value, DispatchError>> {
        Box::pin(async move {
            let manner = *self.0.manner.lock().unwrap();
            self.0.calls.fetch_add(1, Ordering::SeqCst);
            if !matches!(manner, Manner::Refuses | Manner::RefusesUnsure) {
                self.0.done.lock().unwrap().push((effect.handle, effect.epoch));
            }
            match manner {
                Manner::Does => Ok(json!({ "done": effect.key, "attempt": effect.attempt })),
                Manner::Refuses => Err(DispatchError::NotSent("not today".into())),
                Manner::DoesUnsure | Manner::RefusesUnsure => Err(DispatchError::Unknown("who knows".into())),
                Manner::DoesHangs => std::future::pending().await,
                Manner::DoesPanics => panic!("the channel panics on purpose"),
            }
        })
    }

    fn probe<'a>(&'a self, effect: &'a EffectCall, _cancel: &'a CancelToken) -> Option<ChannelFuture<'a, Probed>> {
        let knows = (*self.0.probe.lock().unwrap())?;
        Some(Box::pin(async move {
            if !knows {
                return Probed::Unknown("the receiver is away".into());
            }
            match self
                .0
                .done
                .lock()
                .unwrap()
                .iter()
                .any(|(handle, _)| *handle == effect.handle)
            {
                true => Probed::Sent(json!({ "found": effect.key })),
                false => Probed::NotSent,
            }
        }))
    }
}

type Action = Box<dyn Fn() -> Result<()> + Send + Sync>;

/// Does something at the first pass of a step.
pub struct At {
    step: EffectStep,
    action: Action,
    passed: AtomicUsize,
}

impl At {
    pub fn first(step: EffectStep, action: impl Fn() -> Result<()> + Send + Sync + 'static) -> Arc<dyn EffectGate> {
        Arc::new(Self {
            step,
            action: Box::new(action),
            passed: AtomicUsize::new(0),
        })
    }

    /// Stops the dispatcher there, as its death would.
    pub fn die(step: EffectStep) -> Arc<dyn EffectGate> {
        Self::first(step, || Err(Error::new(ErrorKind::Internal, "died on purpose")))
    }
}

impl EffectGate for At {
    fn pass(&self, step: EffectStep, _effect: Option<&Handle>) -> Result<()> {
        if step == self.step && self.passed.fetch_add(1, Ordering::SeqCst) == 0 {
            (self.action)()
        } else {
            Ok(())
        }
    }
}

/// A workspace whose effects lie in `backend` and go to `outside` by the channel `mail`.
pub fn workspace(backend: &Backend, outside: &Arc<Outside>, configure: impl FnOnce(&mut Effects)) -> Workspace {
    let effects = effects(backend, outside, configure);
    Workspace::with(&[("a", "1\n")], |config| config.effects = effects)
}

/// Opens another kernel on a workspace.
pub fn again(
    ws: &Workspace,
    backend: &Backend,
    outside: &Arc<Outside>,
    configure: impl FnOnce(&mut Effects),
) -> ZeroKernel {
    let config = KernelConfig {
        effects: effects(backend, outside, configure),
        ..config(ws.root.path(), ws.store.path())
    };
    ZeroKernel::open(config).unwrap()
}

fn effects(backend: &Backend, outside: &Arc<Outside>, configure: impl FnOnce(&mut Effects)) -> Effects {
    let mut effects = backend.effects().with("mail", ToOutside(Arc::clone(outside)));
    configure(&mut effects);
    effects
}

/// Every effect of a kernel.
pub fn all(kernel: &ZeroKernel) -> Vec<EffectRecord> {
    kernel.effects(&EffectFilter::default()).unwrap()
}

/// Reconciles until nothing is pending any more.
pub fn until_over(kernel: &ZeroKernel) -> Vec<EffectRecord> {
    let begun = Instant::now();
    loop {
        kernel.reconcile(&CancelToken::new()).unwrap();
        let records = all(kernel);
        if records.iter().all(|record| record.state.is_over()) {
            return records;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{records:#?}");
    }
}

/// The states of effects, in order.
pub fn states(records: &[EffectRecord]) -> Vec<EffectState> {
    records.iter().map(|record| record.state).collect()
}

/// How many events of the session speak of an effect's end.
pub fn told(kernel: &ZeroKernel) -> usize {
    let events = kernel.log(1000).unwrap();
    events
        .iter()
        .filter(|entry| entry.cell.as_str().starts_with("effect-"))
        .count()
}
