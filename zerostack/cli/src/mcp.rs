//! `zero-kernel mcp`: the kernel for any client of the Model Context Protocol, over standard input and output.
//!
//! One tool, `execute_cell`. There is no socket, and nothing outlives the client: when standard input ends, cells that run
//! are cancelled, their commands end with them, and the process goes.

mod frames;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use clap::Args;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, Implementation, JsonObject, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler, ServiceExt};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, ReadBuf};
use zerostack::contracts::json::from_value;
use zerostack::contracts::response::Outcome;
use zerostack::contracts::{CancelToken, ZeroKernelResponse};
use zerostack::{CellOptions, ZeroKernel, instructions};

use crate::{Workspace, fail};
use frames::Frames;

/// The one tool.
const TOOL: &str = "execute_cell";

/// How often a client that asked for it hears that a cell still runs.
const PROGRESS: Duration = Duration::from_secs(1);

/// How long the end waits for cells that are cancelled: the grace of their commands, and what it takes to prove them gone.
const PATIENCE: Duration = Duration::from_secs(10);

/// Serves the Model Context Protocol on standard input and output until the client goes.
#[derive(Args)]
pub struct Mcp {
    #[command(flatten)]
    workspace: Workspace,
}

impl Mcp {
    /// Serves; the exit code is 0 when the client went, 1 when the workspace could not be opened.
    pub fn run(self) -> ExitCode {
        let kernel = match self.workspace.config().and_then(ZeroKernel::open) {
            Ok(kernel) => kernel,
            Err(error) => return fail(&error),
        };
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(why) => {
                eprintln!("zero-kernel: {why}");
                return ExitCode::from(1);
            }
        };
        let end = CancelToken::new();
        let server = Server {
            kernel: kernel.clone(),
            end: end.clone(),
        };
        let served = runtime.block_on(async {
            let (input, output) = rmcp::transport::io::stdio_pipes();
            let input = UntilEnd {
                input,
                end: end.clone(),
            };
            let running = server
                .serve(Frames::new(input, output))
                .await
                .map_err(|why| why.to_string())?;
            let (interrupt, stop) = (end.clone(), Mutex::new(Some(running.cancellation_token())));
            ctrlc::set_handler(move || {
                interrupt.cancel();
                if let Some(stop) = stop.lock().unwrap_or_else(PoisonError::into_inner).take() {
                    stop.cancel();
                }
            })
            .map_err(|why| format!("cannot listen for interrupts: {why}"))?;
            running.waiting().await.map_err(|why| why.to_string())
        });
        end.cancel();
        if let Ok(left) = kernel.shutdown(PATIENCE)
            && !left.is_empty()
        {
            eprintln!("zero-kernel: not proven gone: {left:?}");
        }
        // A read of standard input may still wait on a thread of the runtime.
        runtime.shutdown_background();
        match served {
            Ok(_) => ExitCode::SUCCESS,
            Err(why) => {
                eprintln!("zero-kernel: {why}");
                ExitCode::from(1)
            }
        }
    }
}

/// Standard input, whose end cancels every cell: otherwise the SDK would wait for their answers, which nobody hears.
struct UntilEnd<R> {
    input: R,
    end: CancelToken,
}

impl<R: AsyncRead + Unpin> AsyncRead for UntilEnd<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.input).poll_read(context, buffer);
        let ended = match &polled {
            Poll::Ready(Ok(())) => buffer.filled().len() == before && buffer.remaining() > 0,
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        };
        if ended {
            self.end.cancel();
        }
        polled
    }
}

struct Server {
    kernel: ZeroKernel,
    /// Cancels every cell.
    end: CancelToken,
}

/// Arguments of the tool.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ExecuteCell {
    source: String,
    input: Option<BTreeMap<String, Value>>,
    timeout_ms: Option<u64>,
}

/// Cancels a cell when the request's future is dropped or has ended.
struct Cancel(CancelToken);

impl Drop for Cancel {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Server {
    /// Runs one cell on a thread of its own; progress and cancellation are looked after meanwhile.
    async fn execute(
        &self,
        cell: ExecuteCell,
        context: RequestContext<RoleServer>,
    ) -> Result<ZeroKernelResponse, ErrorData> {
        let cancel = Cancel(self.end.child(None));
        let options = CellOptions {
            cancel: Some(cancel.0.clone()),
            input: cell.input,
            timeout: cell.timeout_ms.map(Duration::from_millis),
            ..CellOptions::default()
        };
        let kernel = self.kernel.clone();
        let (sender, mut answer) = tokio::sync::oneshot::channel();
        std::thread::Builder::new()
            .name("zero-call".into())
            .spawn(move || {
                // Whoever asked may have gone.
                let _ = sender.send(kernel.execute_cell_with(&cell.source, options));
            })
            .map_err(|why| ErrorData::internal_error(format!("the system gave no thread: {why}"), None))?;
        let begun = Instant::now();
        let mut ticks = tokio::time::interval(PROGRESS);
        ticks.tick().await;
        loop {
            tokio::select! {
                response = &mut answer => {
                    return response.map_err(|_| ErrorData::internal_error("the kernel failed inside this cell", None));
                }
                () = context.ct.cancelled(), if !cancel.0.is_cancelled() => cancel.0.cancel(),
                _ = ticks.tick() => {
                    if let Some(token) = context.meta.get_progress_token() {
                        let seconds = begun.elapsed().as_secs_f64();
                        let progress = ProgressNotificationParam::new(token, seconds)
                            .with_message(format!("the cell runs for {seconds:.0} s"));
                        // A client that does not hear it will not hear the answer either.
                        let _ = context.peer.notify_progress(progress).await;
                    }
                }
            }
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("zero-kernel", env!("CARGO_PKG_VERSION")))
            .with_instructions("One tool, execute_cell. Its description says what a cell can do.")
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(vec![tool()]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name != TOOL {
            let detail = format!("there is no tool `{}`; the only one is {TOOL}", request.name);
            return Err(ErrorData::invalid_params(detail, None));
        }
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let response = match from_value::<ExecuteCell>(arguments) {
            Ok(cell) => self.execute(cell, context).await?,
            // The model reads what was wrong as it reads any other answer.
            Err(error) => ZeroKernelResponse::rejected(error),
        };
        Ok(result(&response)?.into())
    }
}

/// The response as a tool's result: its JSON is the text, once, so that it costs its tokens once.
fn result(response: &ZeroKernelResponse) -> Result<CallToolResult, ErrorData> {
    let text = serde_json::to_string(response).map_err(|why| ErrorData::internal_error(why.to_string(), None))?;
    let content = vec![rmcp::model::ContentBlock::text(text)];
    Ok(match response.outcome {
        Outcome::Completed => CallToolResult::success(content),
        Outcome::Failed | Outcome::Cancelled => CallToolResult::error(content),
    })
}

/// The tool as the model sees it. What a cell can do stands in its description, and there alone: not every client shows a
/// server's instructions to its model, but none hides a tool's description.
fn tool() -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "source": { "type": "string", "description": "body of the cell: JavaScript or TypeScript" },
            "input": { "type": "object", "description": "values that the cell sees as `input`" },
            "timeoutMs": { "type": "integer", "minimum": 0, "description": "default 30000" },
        },
        "required": ["source"],
        "additionalProperties": false,
    });
    let schema: JsonObject = match schema {
        Value::Object(schema) => schema,
        _ => JsonObject::new(),
    };
    Tool::new(
        TOOL,
        format!(
            "Runs one cell on the workspace and returns its response.\n\n{}",
            instructions()
        ),
        Arc::new(schema),
    )
    .with_annotations(ToolAnnotations::new().destructive(true).open_world(true))
}
