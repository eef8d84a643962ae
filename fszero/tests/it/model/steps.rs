//! The kinds of step that programs are made of, each with what the model says of it.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;
use zero_contracts::{CancelToken, Digest, Epoch};

use super::run::Run;
use super::tree::{Model, Refused, raw, umask};
use crate::gates::Plan;
use crate::support::*;

/// Names that collide, nest, lead through symlinks and are not UTF-8.
const PATHS: [&str; 14] = [
    "a", "b", "d", "d/x", "d/y", "d/e", "d/e/z", "l", "l/x", "m", "\\xff", "d/e/n/n", "k", "b/no",
];

const TEXTS: [&str; 6] = [
    "one\n",
    "one\ntwo\nthree\n",
    "one\r\ntwo\r\n",
    "two",
    "",
    "\u{feff}one\ntwo",
];

/// One step of a program: a kind and three numbers that choose paths and texts.
pub type Step = (u8, u8, u8, u8);

/// The kinds that programs of this process had so far.
pub static KINDS: AtomicU64 = AtomicU64::new(0);

impl Run {
    pub fn step(&mut self, (kind, p, q, n): Step) {
        let path = PATHS[p as usize % PATHS.len()];
        let other = PATHS[q as usize % PATHS.len()];
        let text = TEXTS[n as usize % TEXTS.len()];
        let any = "any";
        let kind = kind % 41;
        KINDS.fetch_or(1 << kind, Ordering::Relaxed);
        match kind {
            0 | 1 => self.stage(&json!({"path": path, "create": text}), |m| {
                m.create(path, || Held::File(text.into(), 0o666 & !umask()))
            }),
            2 => self.stage(&json!({"path": path, "find": "one", "replacement": "$1"}), |m| {
                m.edit(path, |b| replace_one(b, "one", "$1", false))
            }),
            3 => self.stage(
                &json!({"path": path, "find": "t", "replacement": "T", "count": "all"}),
                |m| m.edit(path, |b| replace_one(b, "t", "T", true)),
            ),
            4 => self.stage(&json!({"path": path, "content": text, "expect": any}), |m| {
                m.edit(path, |old| Ok(whole(old, text)))
            }),
            5 => self.stage(
                &json!({"path": path, "content": {"base64": "/wD/"}, "expect": any}),
                |m| m.edit(path, |_| Ok(vec![0xff, 0, 0xff])),
            ),
            6 => {
                let digest = Digest::of(text.as_bytes());
                self.stage(&json!({"path": path, "content": "guarded\n", "expect": digest}), |m| {
                    m.edit(path, |b| {
                        if b == text.as_bytes() {
                            Ok(whole(b, "guarded\n"))
                        } else {
                            Err(Refused)
                        }
                    })
                });
            }
            7 => self.stage(
                &json!({"path": path, "insertBefore": 1, "content": "first\n", "expect": any}),
                |m| {
                    m.edit(path, |b| {
                        let bom = if b.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
                        let crlf = b.windows(2).any(|w| w == b"\r\n");
                        let line: &[u8] = if crlf { b"first\r\n" } else { b"first\n" };
                        Ok([&b[..bom], line, &b[bom..]].concat())
                    })
                },
            ),
            8 => self.stage(
                &json!({"path": path, "insertAfter": "two", "content": "2½", "expect": any}),
                |m| {
                    m.edit(path, |b| {
                        let mut places = (0..b.len()).filter(|&at| b[at..].starts_with(b"two"));
                        let (Some(at), None) = (places.next(), places.next()) else {
                            return Err(Refused);
                        };
                        let crlf = b.windows(2).any(|pair| pair == b"\r\n");
                        let end: &[u8] = if crlf { b"\r\n" } else { b"\n" };
                        let line = "2½".as_bytes();
                        Ok(match b[at..].iter().position(|&b| b == b'\n') {
                            Some(next) => [&b[..at + next + 1], line, end, &b[at + next + 1..]].concat(),
                            None => [b, end, line].concat(),
                        })
                    })
                },
            ),
            9 => self.stage(
                &json!({"path": path, "lines": [1, 1], "content": "L", "expect": any}),
                |m| {
                    m.edit(path, |b| {
                        let bom = if b.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
                        let rest = b[bom..].iter().position(|&c| c == b'\n');
                        let end = rest.map_or(b.len(), |at| {
                            if at > 0 && b[bom + at - 1] == b'\r' {
                                bom + at - 1
                            } else {
                                bom + at
                            }
                        });
                        Ok([&b[..bom], b"L", &b[end..]].concat())
                    })
                },
            ),
            10 => self.stage(
                &json!({"path": path, "patch": "@@ -1 +1,2 @@\n-one\n+ONE\n+more\n"}),
                |m| {
                    m.edit(path, |b| {
                        let bom = if b.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
                        let lines: Vec<&[u8]> = b[bom..].split_inclusive(|&c| c == b'\n').collect();
                        let hits: Vec<usize> = (0..lines.len())
                            .filter(|&i| lines[i] == b"one\n" || lines[i] == b"one\r\n")
                            .collect();
                        let hit = if hits.first() == Some(&0) {
                            0
                        } else if hits.len() == 1 {
                            hits[0]
                        } else {
                            return Err(Refused);
                        };
                        let new: &[u8] = if lines[hit].ends_with(b"\r\n") {
                            b"ONE\r\nmore\r\n"
                        } else {
                            b"ONE\nmore\n"
                        };
                        Ok([&b[..bom], &lines[..hit].concat(), new, &lines[hit + 1..].concat()].concat())
                    })
                },
            ),
            11 | 12 => self.stage(&json!({"path": path, "remove": true, "expect": any}), |m| {
                m.remove(path)
            }),
            13 => {
                let mode = [0o600, 0o755, 0o644, 0o700][n as usize % 4];
                self.stage(&json!({"path": path, "mode": mode}), |m| m.chmod(path, mode));
            }
            14 | 15 => self.stage(&json!({"move": [path, other]}), |m| m.rename(path, other)),
            16 => self.stage(&json!({"copy": [path, other]}), |m| m.copy(path, other)),
            17 => self.stage(&json!({"mkdir": path}), |m| m.mkdir(path)),
            18 => {
                let target = ["a", "d", "e", "gone"][n as usize % 4];
                self.stage(&json!({"symlink": [target, path]}), |m| {
                    let at = m.canonical(&raw(path), false)?;
                    m.absent(&at)?;
                    m.create(path, || Held::Symlink(target.into()))
                });
            }
            19 => {
                // Atomic: the second fails, so the first is not staged either.
                let list = [
                    json!({"path": path, "create": "x"}),
                    json!({"path": "nowhere", "find": "x", "replacement": "y"}),
                ];
                self.stage_all(&list, |_| Err(Refused));
            }
            20 => self.stage_all(
                &[
                    json!({"path": path, "create": text}),
                    json!({"path": path, "content": "chained"}),
                    json!({"move": [path, other]}),
                ],
                |m| {
                    m.create(path, || Held::File(text.into(), 0o666 & !umask()))?;
                    m.edit(path, |old| Ok(whole(old, "chained")))?;
                    m.rename(path, other)
                },
            ),
            21 => {
                let mark = self.tx().savepoint();
                let seen = self.seen.clone();
                self.marks.push((mark, seen));
            }
            22 => {
                if let Some((mark, seen)) = self.marks.pop() {
                    let result = self.tx().roll_back_to(mark, &CancelToken::new());
                    if !self.dirty {
                        result.unwrap();
                        self.seen = seen;
                        self.compare_view();
                    } else if result.is_err() {
                        self.transaction = None;
                        self.over();
                    }
                }
            }
            23 => {
                let epoch = Epoch(self.epoch);
                let result = self.tx().materialize(epoch, &CancelToken::new());
                if !self.dirty {
                    result.unwrap();
                    self.landed = true;
                    assert_eq!(
                        self.f
                            .image()
                            .into_iter()
                            .filter(|(k, _)| !k.starts_with(b".fszero"))
                            .collect::<Image>(),
                        self.seen.0
                    );
                }
            }
            24 => self.commit(),
            25 => {
                if self.transaction.is_some() {
                    let result = self.tx().restore();
                    result.unwrap();
                    self.over();
                }
            }
            26 => {
                self.transaction = None;
                self.over();
                self.reopen();
                self.over();
            }
            27 => self.elsewhere(path, q),
            28 => {
                let errno = [28, 5, 24][n as usize % 3];
                self.disturbed_commit(Plan::Fail(u64::from(p) % 40, errno));
            }
            29 => self.disturbed_commit(Plan::Die(u64::from(p) % 40)),
            30 => self.revert(),
            // What looks like what was there before, at the same path: nothing may be taken for anything by its looks.
            31 => {
                let same = self.content(path, text);
                self.stage_all(
                    &[json!({"move": [path, other]}), json!({"path": path, "create": same})],
                    |m| {
                        m.rename(path, other)?;
                        m.create(path, || file(&same))
                    },
                );
            }
            32 => {
                let same = self.content(path, text);
                self.stage_all(
                    &[
                        json!({"path": path, "remove": true, "expect": any}),
                        json!({"path": path, "create": same}),
                    ],
                    |m| {
                        m.remove(path)?;
                        m.create(path, || file(&same))
                    },
                );
            }
            33 => self.stage_all(
                &[
                    json!({"move": [path, "t"]}),
                    json!({"move": [other, path]}),
                    json!({"move": ["t", other]}),
                ],
                |m| {
                    m.rename(path, "t")?;
                    m.rename(other, path)?;
                    m.rename("t", other)
                },
            ),
            34 => self.stage_all(
                &[
                    json!({"move": ["d", other]}),
                    json!({"mkdir": "d/e"}),
                    json!({"path": "d/x", "create": "x\n"}),
                ],
                |m| {
                    m.rename("d", other)?;
                    m.mkdir("d/e")?;
                    m.create("d/x", || file("x\n"))
                },
            ),
            35 => self.stage_all(
                &[
                    json!({"copy": [path, other]}),
                    json!({"path": path, "remove": true, "expect": any}),
                    json!({"move": [other, path]}),
                ],
                |m| {
                    m.copy(path, other)?;
                    m.remove(path)?;
                    m.rename(other, path)
                },
            ),
            36 => self.command(&[(n, path, other), (n.wrapping_mul(31) ^ q, other, path)], None),
            37 => self.command(&[(n, path, other), (n ^ p, other, path)], Some(u64::from(q) % 24)),
            38 => {
                let errno = [28, 5, 24][n as usize % 3];
                let step = u64::from(p) % 40;
                self.disturbed_restore(if q % 2 == 0 {
                    Plan::Die(step)
                } else {
                    Plan::Fail(step, errno)
                });
            }
            39 => self.disturbed_recovery(u64::from(p) % 40, u64::from(q) % 24),
            _ => self.guarded_pair(path, other, text),
        }
    }

    /// What a file holds that both see, if it is text; else `text`.
    fn content(&mut self, path: &str, text: &str) -> String {
        self.tx();
        match self
            .seen
            .canonical(&raw(path), false)
            .ok()
            .and_then(|at| self.seen.get(&at))
        {
            Some(Held::File(bytes, _)) => String::from_utf8(bytes).unwrap_or_else(|_| text.into()),
            _ => text.into(),
        }
    }

    /// Two edits of which the second's guard may fail: then neither is staged.
    fn guarded_pair(&mut self, path: &str, other: &str, text: &str) {
        let digest = Digest::of(text.as_bytes());
        self.stage_all(
            &[
                json!({"path": path, "content": "first\n", "expect": "any"}),
                json!({"path": other, "content": "second\n", "expect": digest}),
            ],
            |m: &mut Model| {
                // What the cell itself put there in this very call is not what was expected either.
                m.edit(path, |old| Ok(whole(old, "first\n")))?;
                m.edit(other, |old| {
                    if old == text.as_bytes() {
                        Ok(whole(old, "second\n"))
                    } else {
                        Err(Refused)
                    }
                })
            },
        );
    }
}

fn file(text: &str) -> Held {
    Held::File(text.into(), 0o666 & !umask())
}

/// Text in place of a whole file.
fn whole(old: &[u8], text: &str) -> Vec<u8> {
    let newlines = old.iter().filter(|&&b| b == b'\n').count();
    let crlf = old.windows(2).filter(|pair| pair == b"\r\n").count();
    let text = if newlines > 0 && newlines == crlf {
        text.replace("\r\n", "\n").replace('\n', "\r\n")
    } else {
        text.to_owned()
    };
    let mark = old.starts_with(b"\xef\xbb\xbf") && !text.is_empty() && !text.starts_with('\u{feff}');
    [if mark { &b"\xef\xbb\xbf"[..] } else { b"" }, text.as_bytes()].concat()
}

fn replace_one(bytes: &[u8], find: &str, replacement: &str, all: bool) -> Result<Vec<u8>, Refused> {
    let (mut out, mut at, mut count) = (Vec::new(), 0, 0);
    while at < bytes.len() {
        if bytes[at..].starts_with(find.as_bytes()) {
            out.extend_from_slice(replacement.as_bytes());
            at += find.len();
            count += 1;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    if count == 0 || (!all && count != 1) {
        return Err(Refused);
    }
    Ok(out)
}
