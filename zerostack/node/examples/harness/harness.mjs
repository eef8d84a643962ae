// A harness in its smallest honest form: it takes cells from a model, runs them, and feeds back what they came to, within a
// budget of tokens. The model here is a script (`model.mjs`); put a real one in its place.

import { ZeroKernel } from '@zerostack/zero-kernel';

/** Tokens that a fed-back response costs beside its value and console. */
const ENVELOPE = 60;

/** Characters of a line in the transcript. */
const WIDTH = 140;

/**
 * Runs a conversation to its end.
 * @param {object} options
 * @param {string} options.root the workspace
 * @param {(conversation: object[]) => Promise<{cell: string, why: string} | {done: string}>} options.model
 * @param {number} options.tokens what all responses together may cost the model
 * @param {(line: string) => void} options.log gets the transcript
 */
export async function converse({ root, model, tokens, log }) {
  const kernel = new ZeroKernel({ root, store: 'transient' });
  const conversation = [{ role: 'system', text: `You have ${tokens} tokens for the answers of all your cells.` }];
  let left = tokens;
  try {
    for (let turn = 1; ; turn++) {
      const said = await model(conversation);
      if (said.done !== undefined) {
        log(`model: ${said.done}`);
        return { conversation, left };
      }
      log(`model, turn ${turn}: ${said.why}`);
      log(indent(said.cell));
      if (left <= ENVELOPE) throw new Error('the budget is spent: begin a new conversation with what was learnt');
      // A third of what is left, so that a long answer never takes away the chance to act on it. The kernel cuts what is
      // longer, marks the cut and keeps the whole behind a handle.
      const response = await kernel.executeCell(said.cell, {
        budgets: { valueTokens: Math.max(100, Math.floor((left - ENVELOPE) / 3)), consoleTokens: 200 },
        timeoutMs: 20_000,
      });
      const fed = feed(response);
      left -= response.ledger.tokensVisible + ENVELOPE;
      conversation.push({ role: 'model', cell: said.cell }, { role: 'kernel', ...fed });
      log(indent(shown(fed), '  > '));
      const cut = response.ledger.tokensRaw - response.ledger.tokensVisible;
      log(`  (${response.ledger.tokensVisible} tokens shown, ${cut} kept behind handles; ${left} left)\n`);
    }
  } finally {
    await kernel.shutdown();
  }
}

/** What the model sees of a response: what it came to, and nothing of how long it took. */
function feed({ outcome, value, error, console, effects, handles }) {
  return {
    outcome,
    ...(value !== undefined && { value }),
    ...(error && { error: { kind: error.kind, detail: error.detail, ...(error.location && { line: error.location.line }) } }),
    ...(console && { console }),
    effects: effects.disposition,
    ...(handles.length > 0 && { handles }),
  };
}

function shown({ outcome, value, error, effects }) {
  const lines = [`${outcome}, effects ${effects}`];
  if (error) lines.push(`${error.kind}: ${error.detail}`);
  if (value !== undefined) lines.push(...JSON.stringify(value, null, 1).split('\n'));
  return lines.join('\n');
}

/** Lines of the transcript. What the model sees is longer than what a reader wants to: long lines are cut here, and say so. */
function indent(text, mark = '  | ') {
  const lines = text.trim().split('\n').map((line) => {
    const rest = line.length - WIDTH;
    return rest > 40 ? `${line.slice(0, WIDTH)}… and ${rest} more characters` : line;
  });
  return lines.map((line) => `${mark}${line}`.trimEnd()).join('\n');
}
