//! Functions of JavaScript that a kernel calls: each call is a question to the event loop, asked from the thread that needs
//! the answer.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use zerostack::Policy;
use zerostack::contracts::{CancelToken, Error, Operation};

use crate::mailbox::Mailbox;

/// The functions of one kernel. The kernel is known to JavaScript by its number.
#[derive(Clone)]
pub struct Functions {
    mailbox: Arc<Mailbox>,
    kernel: u32,
}

impl Functions {
    /// Those of the kernel with this number.
    pub fn new(mailbox: &Arc<Mailbox>, kernel: u32) -> Self {
        Self {
            mailbox: Arc::clone(mailbox),
            kernel,
        }
    }

    /// Asks one of them; the inner error is what it threw.
    ///
    /// # Errors
    /// The outer one when there is no answer any more: `cancelled` and `deadline`.
    pub fn ask(&self, function: &str, question: Value, token: &CancelToken) -> Result<Result<String, String>, Error> {
        self.mailbox.ask(&self.addressed(function, question), token)
    }

    /// Asks one of them without holding up a thread.
    pub async fn ask_later(&self, function: &str, question: Value) -> Result<Result<String, String>, Error> {
        self.mailbox.ask_later(&self.addressed(function, question)).await
    }

    fn addressed(&self, function: &str, mut question: Value) -> Value {
        question["ask"] = function.into();
        question["kernel"] = self.kernel.into();
        question
    }
}

/// What a policy may answer.
#[derive(Deserialize)]
#[serde(untagged)]
enum Answer {
    /// Nothing: it may happen.
    Silence(()),
    /// Whether it may happen.
    Allowed(bool),
    /// Why it may not.
    Denied(String),
}

impl Policy for Functions {
    fn check(&self, operation: Operation, arguments: &[Value], token: &CancelToken) -> Result<(), String> {
        let question = json!({ "operation": operation, "arguments": arguments });
        // A policy that does not answer allows nothing.
        let answer = self.ask("policy", question, token).map_err(|why| why.to_string())??;
        match serde_json::from_str(&answer) {
            Ok(Answer::Silence(()) | Answer::Allowed(true)) => Ok(()),
            Ok(Answer::Allowed(false)) => Err("it is not allowed".to_owned()),
            Ok(Answer::Denied(why)) => Err(why),
            Err(_) => Err(format!("the policy answered {answer}, which is no verdict")),
        }
    }
}
