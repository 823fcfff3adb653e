//! Transfers: sending and receiving files.

use std::path::PathBuf;
use std::sync::Mutex;

use farcast_core::Span;
use farcast_transfer::{
    Cancel, Changing, Error, ErrorKind, ProtocolName, ReceiveUpdate, ReceivedProduct, ReceiverState,
    SendEvent, SendOutcome, SendSummary, SendUpdate,
};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::errors::TransferError;

/// Handle that cancels a transfer from another thread.
#[pyclass(frozen, module = "farcast._native")]
#[derive(Default)]
pub(crate) struct CancelHandle(Mutex<CancelState>);

/// Transfers that a handle cancels.
#[derive(Default)]
struct CancelState {
    /// Set once the handle was used.
    used: bool,
    transfers: Vec<Cancel>,
}

#[pymethods]
impl CancelHandle {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Ends the transfer in good order.
    fn cancel(&self) {
        let mut state = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        state.used = true;
        state.transfers.iter().for_each(Cancel::cancel);
    }
}

impl CancelHandle {
    fn add(&self, cancel: Cancel) {
        let mut state = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if state.used {
            cancel.cancel();
        }
        state.transfers.push(cancel);
    }
}

/// Options of a transfer, as Python gives them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct SendOptions {
    to: String,
    rate: Option<String>,
    receivers: Vec<String>,
    protocol: String,
    name: Option<String>,
    interface: Option<String>,
    ttl: u8,
    key: Option<PathBuf>,
    unsealed: bool,
    changing: String,
    wait: Option<String>,
    plan: Option<PathBuf>,
    settings: Vec<(String, String)>,
}

/// Options of a reception, as Python gives them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ReceiveOptions {
    group: String,
    into: PathBuf,
    name: Option<String>,
    protocol: String,
    once: bool,
    interface: Option<String>,
    key: Option<PathBuf>,
    unsealed: bool,
    patience: Option<String>,
    simulate_loss: f64,
}

/// Sends files. Calls `update` with a JSON object for each update. Returns the summary as JSON.
#[pyfunction]
pub(crate) fn send(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    options: SendOptions,
    cancel: &CancelHandle,
    update: Option<Py<PyAny>>,
) -> PyResult<String> {
    let sender = sender(options).map_err(|error| raised(&error, &[]))?;
    cancel.add(sender.cancel());
    let mut watch = Watch { update, cancel: sender.cancel(), error: None };
    let sent = py.detach(|| sender.send_with(paths, &mut |update| watch.pass(|| sent_update(&update))));
    if let Some(error) = watch.error {
        return Err(error);
    }
    match sent {
        Ok(summary) => Ok(summary_object(&summary).to_string()),
        Err(error) => {
            let summary = error.summary.as_deref();
            Err(raised(&error.error, summary.map_or(&[], |summary| &summary.receivers)))
        }
    }
}

/// Receives files. Calls `update` with a JSON object for each update. Returns the products as JSON.
#[pyfunction]
pub(crate) fn receive(
    py: Python<'_>,
    options: ReceiveOptions,
    cancel: &CancelHandle,
    update: Option<Py<PyAny>>,
) -> PyResult<String> {
    let receiver = receiver(options).map_err(|error| raised(&error, &[]))?;
    cancel.add(receiver.cancel());
    let mut watch = Watch { update, cancel: receiver.cancel(), error: None };
    let result = py.detach(|| receiver.receive_with(&mut |update| watch.pass(|| received_update(&update))));
    if let Some(error) = watch.error {
        return Err(error);
    }
    let products = result.map_err(|error| raised(&error, &[]))?;
    Ok(Value::from(products.iter().map(product).collect::<Vec<_>>()).to_string())
}

/// Passes updates on to Python, and cancels the transfer after an exception there or Ctrl-C.
struct Watch {
    update: Option<Py<PyAny>>,
    cancel: Cancel,
    error: Option<PyErr>,
}

impl Watch {
    fn pass(&mut self, object: impl FnOnce() -> Value) {
        if self.error.is_some() {
            return;
        }
        let passed = Python::attach(|py| {
            py.check_signals()?;
            match &self.update {
                Some(update) => update.call1(py, (object().to_string(),)).map(|_| ()),
                None => Ok(()),
            }
        });
        if let Err(error) = passed {
            self.error = Some(error);
            self.cancel.cancel();
        }
    }
}

fn sender(options: SendOptions) -> Result<farcast_transfer::Sender, Error> {
    let changing = match options.changing.as_str() {
        "skip" => Changing::Skip,
        "again" => Changing::Again,
        "fail" => Changing::Fail,
        other => return Err(Error::usage(format!("changing is {other:?}: say skip, again or fail"))),
    };
    let mut builder = farcast_transfer::Sender::builder()
        .to(&options.to)
        .receivers(options.receivers)
        .protocol(protocol(&options.protocol)?)
        .ttl(options.ttl)
        .changing(changing);
    if let Some(rate) = &options.rate {
        builder = builder.rate(rate);
    }
    if let Some(name) = options.name {
        builder = builder.name(name);
    }
    if let Some(interface) = options.interface {
        builder = builder.interface(interface);
    }
    if let Some(key) = options.key {
        builder = builder.key(key);
    }
    if options.unsealed {
        builder = builder.unsealed();
    }
    if let Some(time) = &options.wait {
        builder = builder.wait(span("wait", time)?);
    }
    if let Some(plan) = options.plan {
        builder = builder.plan(plan);
    }
    for (key, value) in options.settings {
        builder = builder.set(key, value);
    }
    builder.build()
}

fn receiver(options: ReceiveOptions) -> Result<farcast_transfer::Receiver, Error> {
    let mut builder = farcast_transfer::Receiver::builder()
        .from(&options.group)
        .into(options.into)
        .protocol(protocol(&options.protocol)?)
        .simulate_loss(options.simulate_loss);
    if let Some(name) = options.name {
        builder = builder.name(name);
    }
    if options.once {
        builder = builder.once();
    }
    if let Some(interface) = options.interface {
        builder = builder.interface(interface);
    }
    if let Some(key) = options.key {
        builder = builder.key(key);
    }
    if options.unsealed {
        builder = builder.unsealed();
    }
    if let Some(time) = &options.patience {
        builder = builder.patience(span("patience", time)?);
    }
    builder.build()
}

fn protocol(name: &str) -> Result<ProtocolName, Error> {
    name.parse().map_err(Error::usage)
}

fn span(option: &str, text: &str) -> Result<Span, Error> {
    text.parse().map_err(|error| Error::usage(format!("{option} is {text:?}: {error}")))
}

/// Returns the exception for an error of a transfer, of which these receivers are known.
fn raised(error: &Error, receivers: &[ReceiverState]) -> PyErr {
    let kind = match error.kind {
        ErrorKind::Usage => "usage",
        ErrorKind::Incomplete => "incomplete",
        _ => "failed",
    };
    let receivers = receivers_object(receivers).to_string();
    TransferError::new_err((error.sentence.clone(), kind, receivers))
}

fn receivers_object(receivers: &[ReceiverState]) -> Value {
    let one = |one: &ReceiverState| {
        json!({
            "name": one.name, "state": one.state,
            "complete_s": one.complete.map(farcast_core::Time::as_secs_f64),
        })
    };
    receivers.iter().map(one).collect()
}

fn summary_object(summary: &SendSummary) -> Value {
    let outcome = match summary.outcome {
        SendOutcome::Done => "done",
        SendOutcome::Unknown => "unknown",
        SendOutcome::Incomplete => "incomplete",
        SendOutcome::Failed => "failed",
    };
    json!({
        "name": summary.name, "outcome": outcome, "sentence": summary.sentence, "octets": summary.octets,
        "wire_octets": summary.wire_octets, "rounds": summary.rounds,
        "duration_s": summary.duration.as_secs_f64(), "data_duration_s": summary.data_duration.as_secs_f64(),
        "receivers": receivers_object(&summary.receivers),
    })
}

fn sent_update(update: &SendUpdate) -> Value {
    match update {
        SendUpdate::Hashing { hashed, total } => {
            json!({ "kind": "hashing", "hashed": hashed, "total": total })
        }
        SendUpdate::Skipped { path, reason } => json!({ "kind": "skipped", "path": path, "reason": reason }),
        SendUpdate::Waiting { reason } => json!({ "kind": "waiting", "reason": reason }),
        SendUpdate::Began { name, octets, sealed } => {
            json!({ "kind": "began", "name": name, "octets": octets, "sealed": sealed })
        }
        SendUpdate::Progress(progress) => json!({
            "kind": "progress", "phase": progress.phase, "round": progress.round, "sent": progress.sent,
            "segments": progress.segments, "elapsed_s": progress.elapsed.as_secs_f64(),
            "complete": progress.complete, "receivers": progress.receivers,
        }),
        SendUpdate::Event(event) => event_object(event),
        SendUpdate::Again { changed } => json!({ "kind": "again", "changed": changed }),
        SendUpdate::Notice { sentence } => json!({ "kind": "notice", "sentence": sentence }),
        other => json!({ "kind": "notice", "sentence": format!("{other:?}") }),
    }
}

fn event_object(event: &SendEvent) -> Value {
    match event {
        SendEvent::Started { receivers } => json!({ "kind": "started", "receivers": receivers }),
        SendEvent::Round { round, segments } => {
            json!({ "kind": "round", "round": round, "segments": segments })
        }
        SendEvent::Object(object) => json!({ "kind": "object", "object": object }),
        SendEvent::Reached { receiver, object } => {
            json!({ "kind": "reached", "receiver": receiver, "object": object })
        }
        SendEvent::Has(receiver) => json!({ "kind": "has", "receiver": receiver }),
        SendEvent::Lost(receiver) => json!({ "kind": "lost", "receiver": receiver }),
        SendEvent::Delivered => json!({ "kind": "delivered" }),
        SendEvent::Ended(outcome) => json!({ "kind": "ended", "outcome": outcome }),
        SendEvent::Other { kind, fields, .. } => {
            let mut object = fields.clone();
            object["kind"] = (*kind).into();
            object
        }
        other => json!({ "kind": "notice", "sentence": format!("{other:?}") }),
    }
}

fn product(product: &ReceivedProduct) -> Value {
    json!({
        "name": product.name, "sender": product.sender.to_string(), "octets": product.octets,
        "duration_s": product.duration.as_secs_f64(), "verified": product.verified,
    })
}

fn received_update(update: &ReceiveUpdate) -> Value {
    match update {
        ReceiveUpdate::Listening { address } => {
            json!({ "kind": "listening", "address": address.to_string() })
        }
        ReceiveUpdate::Waiting { reason } => json!({ "kind": "waiting", "reason": reason }),
        ReceiveUpdate::Joined { name, sender, octets } => {
            json!({ "kind": "joined", "name": name, "sender": sender.to_string(), "octets": octets })
        }
        ReceiveUpdate::Progress { name, have, segments } => {
            json!({ "kind": "progress", "name": name, "have": have, "segments": segments })
        }
        ReceiveUpdate::File { path } => json!({ "kind": "file", "path": path }),
        ReceiveUpdate::Complete(complete) => {
            let mut object = product(complete);
            object["kind"] = "complete".into();
            object
        }
        ReceiveUpdate::Incomplete { name, reason } => {
            json!({ "kind": "incomplete", "name": name, "reason": reason })
        }
        ReceiveUpdate::Notice { sentence } => json!({ "kind": "notice", "sentence": sentence }),
        other => json!({ "kind": "notice", "sentence": format!("{other:?}") }),
    }
}
