//! Messages over standard input and output, one JSON document a line, and an answer to every line.
//!
//! The SDK's own transport leaves a line that is too long or is no JSON without an answer, so that a client waits for ever. Here
//! it gets a JSON-RPC error without an id (`null`, for nobody can tell whose it was), and the next line is read.

use std::io::{Error, ErrorKind};

use rmcp::RoleServer;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot};

/// Size of the longest line that is read; what is longer is skipped as it comes.
pub const LINE_BYTES: usize = 16 * 1024 * 1024;

/// Answers that wait for a client that does not read them, before no further line is read.
const WAITING: usize = 64;

/// JSON-RPC: the text is no JSON.
const PARSE_ERROR: i64 = -32700;

/// JSON-RPC: the JSON is no message.
const INVALID_REQUEST: i64 = -32600;

/// A line on its way out, and who wants to know that it was written.
type Outgoing = (Vec<u8>, Option<oneshot::Sender<Result<(), Error>>>);

/// The transport.
pub struct Frames<R> {
    input: BufReader<R>,
    /// The line as far as it was read: a read may be given up, and goes on.
    line: Vec<u8>,
    /// Whether the rest of the line is skipped.
    skipping: bool,
    /// An answer that nobody but this transport gives.
    refusal: Option<Vec<u8>>,
    output: Option<mpsc::Sender<Outgoing>>,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    /// Reads from `input`. Lines are written to `output` by a task of their own, so that each is written whole.
    pub fn new(input: R, output: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        let (sender, lines) = mpsc::channel(WAITING);
        tokio::spawn(write(output, lines));
        Self {
            input: BufReader::new(input),
            line: Vec::new(),
            skipping: false,
            refusal: None,
            output: Some(sender),
        }
    }

    /// Reads up to the end of a line; false at the end of the input. Whoever drops this reads on later.
    async fn read_line(&mut self) -> Result<bool, Error> {
        loop {
            let some = self.input.fill_buf().await?;
            if some.is_empty() {
                return Ok(false);
            }
            let end = some.iter().position(|byte| *byte == b'\n');
            let part = &some[..end.unwrap_or(some.len())];
            let used = end.map_or(some.len(), |at| at + 1);
            if !self.skipping && self.line.len() + part.len() > LINE_BYTES {
                self.skipping = true;
                self.line = Vec::new();
            }
            if !self.skipping {
                self.line.extend_from_slice(part);
            }
            self.input.consume(used);
            if end.is_some() {
                return Ok(true);
            }
        }
    }

    /// Makes a message of the line that was read; none for an empty one, for one that is refused, and for notifications of
    /// other protocols.
    fn message(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.skipping) {
            let why = format!("a message has at most {LINE_BYTES} bytes");
            self.refusal = Some(refusal(&Value::Null, INVALID_REQUEST, &why));
            return None;
        }
        let text = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&line).trim_ascii();
        if text.is_empty() {
            return None;
        }
        let value: Value = match serde_json::from_slice(text) {
            Ok(value) => value,
            Err(why) => {
                self.refusal = Some(refusal(
                    &Value::Null,
                    PARSE_ERROR,
                    &format!("this is no JSON to be read: {why}"),
                ));
                return None;
            }
        };
        let id = value.get("id").cloned();
        let is_notification = id.is_none() && value.get("method").is_some_and(Value::is_string);
        match serde_json::from_value(value) {
            Ok(message) => Some(message),
            // Nobody waits for an answer to a notification.
            Err(_) if is_notification => None,
            Err(why) => {
                let id = id.filter(|id| id.is_string() || id.is_number()).unwrap_or_default();
                let why = format!("this is no message of the protocol: {why}");
                self.refusal = Some(refusal(&id, INVALID_REQUEST, &why));
                None
            }
        }
    }
}

fn refusal(id: &Value, code: i64, message: &str) -> Vec<u8> {
    let answer = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } });
    format!("{answer}\n").into_bytes()
}

async fn write(mut output: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<Outgoing>) {
    while let Some((line, told)) = lines.recv().await {
        let mut written = output.write_all(&line).await;
        if written.is_ok() {
            written = output.flush().await;
        }
        let failed = written.is_err();
        if let Some(told) = told {
            // Whoever sent it may have gone.
            let _ = told.send(written);
        }
        if failed {
            return;
        }
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::NotConnected, "standard output is closed")
}

impl<R: AsyncRead + Send + Unpin> Transport<RoleServer> for Frames<R> {
    type Error = Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Error>> + Send + 'static {
        let output = self.output.clone();
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let (told, written) = oneshot::channel();
            let output = output.ok_or_else(closed)?;
            output.send((line, Some(told))).await.map_err(|_| closed())?;
            written.await.map_err(|_| closed())?
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if self.refusal.is_some() {
                let place = self.output.as_ref()?.reserve().await.ok()?;
                place.send((self.refusal.take().unwrap_or_default(), None));
            }
            match self.read_line().await {
                Ok(true) => {}
                // What has no end of line is no message.
                Ok(false) => return None,
                Err(why) => {
                    eprintln!("zero-kernel: reading standard input: {why}");
                    return None;
                }
            }
            if let Some(message) = self.message() {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Error> {
        self.output = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    const PING: &str = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;

    /// What comes in of some input, and what is answered by the transport itself.
    async fn told(input: Vec<u8>) -> (usize, Vec<Value>) {
        let (mut near, far) = tokio::io::duplex(1 << 20);
        let mut frames = Frames::new(&*input, far);
        let mut messages = 0;
        while frames.receive().await.is_some() {
            messages += 1;
        }
        drop(frames);
        let mut text = String::new();
        near.read_to_string(&mut text).await.unwrap();
        (
            messages,
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
        )
    }

    #[tokio::test]
    async fn whatever_line_comes_is_a_message_or_has_an_answer_and_the_next_is_read() {
        let deep = |open: &str, close: &str| open.repeat(200_000) + &close.repeat(200_000);
        let long = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":"{}"}}}}"#,
            "x".repeat(LINE_BYTES)
        );
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"execute_cell","arguments":{}}}}}"#,
            deep("[", "]")
        );
        for (line, code, id) in [
            (long, INVALID_REQUEST, Value::Null),
            (deep("[", "]"), PARSE_ERROR, Value::Null),
            (deep(r#"{"a":"#, "}"), PARSE_ERROR, Value::Null),
            (deep("[", ""), PARSE_ERROR, Value::Null),
            (call, PARSE_ERROR, Value::Null),
            ("{".into(), PARSE_ERROR, Value::Null),
            ("no json".into(), PARSE_ERROR, Value::Null),
            ("\u{feff}{".into(), PARSE_ERROR, Value::Null),
            ("[]".into(), INVALID_REQUEST, Value::Null),
            ("7".into(), INVALID_REQUEST, Value::Null),
            (
                r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#.into(),
                INVALID_REQUEST,
                "a".into(),
            ),
            (r#"{"id":5}"#.into(), INVALID_REQUEST, 5.into()),
            (r#"{"id":{},"method":7}"#.into(), INVALID_REQUEST, Value::Null),
        ] {
            let start: String = line.chars().take(60).collect();
            let (messages, answers) = told(format!("{line}\n{PING}\r\n").into_bytes()).await;
            assert_eq!((messages, answers.len()), (1, 1), "{start}");
            assert_eq!(
                (&answers[0]["id"], &answers[0]["error"]["code"]),
                (&id, &code.into()),
                "{start}"
            );
            assert!(answers[0].as_object().unwrap().contains_key("id"), "{start}");
        }
    }

    #[tokio::test]
    async fn bytes_that_are_no_text_have_an_answer() {
        let (messages, answers) = told([b"\xff\xfe\n".as_slice(), PING.as_bytes(), b"\n"].concat()).await;
        assert_eq!((messages, answers.len()), (1, 1));
    }

    #[tokio::test]
    async fn empty_lines_and_notifications_of_others_have_none() {
        let input = format!("\n \r\n{{\"jsonrpc\":\"1.0\",\"method\":\"x/y\"}}\n{PING}\n");
        assert_eq!(told(input.into_bytes()).await, (1, vec![]));
    }

    #[tokio::test]
    async fn a_read_that_is_given_up_loses_nothing() {
        let (mut near, far) = tokio::io::duplex(64);
        let mut frames = Frames::new(far, tokio::io::sink());
        let (first, rest) = PING.split_at(9);
        near.write_all(first.as_bytes()).await.unwrap();
        let given_up = tokio::time::timeout(std::time::Duration::from_millis(20), frames.receive()).await;
        assert!(given_up.is_err());
        near.write_all(format!("{rest}\n").as_bytes()).await.unwrap();
        assert!(frames.receive().await.is_some());
    }
}
