//! Hands out bytes to the parts of a JSON text, and cuts what does not fit.

use super::{Cut, Kind, Tree, What};

/// Bytes that a mark takes, about.
const MARK: usize = 44;
/// A part of an object is shown with at least this many bytes, or not at all.
const LEAST_MEMBER: usize = 160;
/// The same for an array, whose elements are like each other: rather fewer, but whole.
const LEAST_ITEM: usize = 400;
/// Containers inside this many others are never opened: readers of JSON limit the depth.
const DEEPEST: u32 = 100;

/// Returns the cuts, in order, that leave about `bytes` bytes.
pub(super) fn cuts(tree: &Tree<'_>, bytes: usize) -> Vec<Cut> {
    let mut cuts = Vec::new();
    if !tree.nodes.is_empty() {
        Allot {
            tree,
            cuts: &mut cuts,
            too_deep: tree.nodes.iter().any(|node| node.depth > DEEPEST),
        }
        .node(0, bytes);
    }
    cuts
}

/// Shows about `bytes` bytes more of what one cut left out; returns the cuts in its place.
pub(super) fn open(tree: &Tree<'_>, cut: &Cut, bytes: usize) -> Vec<Cut> {
    let mut cuts = Vec::new();
    let mut allot = Allot {
        tree,
        cuts: &mut cuts,
        too_deep: tree.nodes.iter().any(|node| node.depth > DEEPEST),
    };
    match cut.what {
        What::Text => {
            let more = part_end(&tree.text[cut.bytes.clone()], bytes);
            let rest = cut.bytes.start + more..cut.bytes.end;
            if rest.len() > MARK {
                allot.cuts.push(Cut {
                    bytes: rest,
                    ..cut.clone()
                });
            }
        }
        What::Items(count) | What::Members(count, _) => {
            if tree.nodes[cut.node].depth > DEEPEST && allot.too_deep {
                return vec![cut.clone()];
            }
            // The first is shown in any case, and as many more as there is room for: behind a number may follow a text.
            let (mut next, mut left, mut room) = (cut.node, count, bytes);
            while left > 0 {
                let node = &tree.nodes[next];
                let key = node.start - node.member;
                if left < count && room < key + (node.end - node.start).min(2 * MARK) {
                    break;
                }
                let used = key + allot.node(next, room.saturating_sub(key));
                (next, left, room) = (node.skip, left - 1, room.saturating_sub(used));
            }
            if left > 0 {
                let parent = tree.nodes[cut.node].parent;
                let siblings: Vec<usize> = tree.children(parent).collect();
                let what = allot.what(parent, &siblings, left);
                let rest = tree.nodes[next].member..cut.bytes.end;
                allot.cuts.push(Cut {
                    bytes: rest,
                    what,
                    node: next,
                });
            }
        }
    }
    cuts
}

struct Allot<'a, 'c> {
    tree: &'a Tree<'a>,
    cuts: &'c mut Vec<Cut>,
    too_deep: bool,
}

impl Allot<'_, '_> {
    /// Gives a value so many bytes; returns how many it used.
    fn node(&mut self, index: usize, bytes: usize) -> usize {
        let node = &self.tree.nodes[index];
        let size = node.end - node.start;
        // A value that holds something too deep is opened, so that the too deep part is cut.
        let holds_too_deep = self.too_deep
            && matches!(node.kind, Kind::Array | Kind::Object)
            && self.tree.nodes[index..node.skip]
                .iter()
                .any(|inner| inner.depth > DEEPEST);
        if size <= bytes && !holds_too_deep {
            return size;
        }
        match node.kind {
            Kind::Scalar => size,
            Kind::String => self.string(index, bytes),
            Kind::Array | Kind::Object => self.container(index, bytes),
        }
    }

    /// Cuts the inside of a string to about `bytes` bytes: two thirds head, one third tail.
    fn string(&mut self, node: usize, bytes: usize) -> usize {
        let (start, end) = (self.tree.nodes[node].start + 1, self.tree.nodes[node].end - 1);
        let size = end - start;
        if size <= MARK {
            return size + 2;
        }
        let room = bytes.saturating_sub(MARK + 2);
        let inside = &self.tree.text[start..end];
        let head = part_end(inside, room - room / 3);
        let tail = tail_start(inside, head, room / 3);
        if tail - head <= MARK {
            return size + 2;
        }
        self.cuts.push(Cut {
            bytes: start + head..start + tail,
            what: What::Text,
            node,
        });
        size - (tail - head) + MARK + 2
    }

    fn container(&mut self, index: usize, bytes: usize) -> usize {
        let node = &self.tree.nodes[index];
        let (depth, is_array) = (node.depth, node.kind == Kind::Array);
        let children: Vec<usize> = self.tree.children(index).collect();
        let (Some(&first), Some(&last)) = (children.first(), children.last()) else {
            return node.end - node.start;
        };
        // Everything but the children: brackets and white space around them.
        let inside = self.tree.nodes[first].member..self.tree.nodes[last].end;
        let around = (node.end - node.start) - (inside.end - inside.start);
        let room = bytes.saturating_sub(around);
        if depth >= DEEPEST && self.too_deep {
            return around + self.elide(index, &children, inside);
        }
        // Size of each child with its key and what separates it from the next.
        let size = |at: usize| {
            let start = self.tree.nodes[children[at]].member;
            let end = children
                .get(at + 1)
                .map_or(inside.end, |next| self.tree.nodes[*next].member);
            end - start
        };
        let least = if is_array {
            LEAST_ITEM.max(bytes / 8).min(room / 2)
        } else {
            LEAST_MEMBER.min(room / 2)
        };
        // All are shown if each can have its least; a long array is given up early.
        let mut least_of_all = 0;
        let all_fit = (0..children.len()).all(|at| {
            least_of_all += size(at).min(least);
            least_of_all <= room
        });
        if room > 2 * MARK && all_fit || is_one_that_can_be_cut(&children, self.tree, room) {
            let level = level(children.len(), &size, room);
            return around + self.shown(&children, 0..children.len(), level, room);
        }
        // Not all can be shown: some from the head, fewer from the tail.
        let room = room.saturating_sub(MARK);
        let (mut head, mut used) = (0, 0);
        while head < children.len() {
            let wanted = size(head).min(least);
            if used + wanted > room - room / 4 {
                break;
            }
            used += size(head).min(least);
            head += 1;
        }
        let mut tail = children.len();
        while tail > head + 1 {
            let wanted = size(tail - 1);
            if wanted > least || used + wanted > room {
                break;
            }
            used += wanted;
            tail -= 1;
        }
        if head == 0 && tail == children.len() {
            // Not even the first fits at its least: show a part of it if that can be.
            if room > 2 * MARK {
                head = 1;
            } else {
                return around + self.elide(index, &children, inside);
            }
        }
        let tail_bytes: usize = (tail..children.len()).map(size).sum();
        let head_room = room.saturating_sub(tail_bytes);
        let head_level = level(head, &size, head_room);
        let shown = self.shown(&children, 0..head, head_level, head_room);
        if tail - head > 0 {
            let start = self.tree.nodes[children[head]].member;
            let end = self.tree.nodes[children[tail - 1]].end;
            let what = self.what(index, &children, tail - head);
            self.cuts.push(Cut {
                bytes: start..end,
                what,
                node: children[head],
            });
        }
        around + shown + MARK + self.shown(&children, tail..children.len(), usize::MAX, tail_bytes)
    }

    /// Shows children, each with at most `level` bytes; what one does not use the next may.
    fn shown(&mut self, children: &[usize], range: std::ops::Range<usize>, level: usize, room: usize) -> usize {
        let mut used = 0;
        let mut spare = 0;
        for at in range {
            let node = &self.tree.nodes[children[at]];
            let key = node.start - node.member;
            let next = children
                .get(at + 1)
                .map_or(node.end, |next| self.tree.nodes[*next].member);
            let between = next - node.end;
            let given = level
                .saturating_add(spare)
                .min(room.saturating_sub(used).max(level.min(room)));
            let taken = key + between + self.node(children[at], given.saturating_sub(key + between));
            spare = if next - node.member > level {
                given.saturating_sub(taken)
            } else {
                spare
            };
            used += taken;
        }
        used
    }

    /// Cuts all children; the container stays, with the mark in it.
    fn elide(&mut self, index: usize, children: &[usize], inside: std::ops::Range<usize>) -> usize {
        let size = inside.end - inside.start;
        let deep = self.too_deep;
        if size <= MARK && !deep {
            return size;
        }
        let what = self.what(index, children, children.len());
        self.cuts.push(Cut {
            bytes: inside,
            what,
            node: children[0],
        });
        MARK
    }

    fn what(&self, index: usize, children: &[usize], count: usize) -> What {
        if self.tree.nodes[index].kind == Kind::Array {
            return What::Items(count);
        }
        // The mark's key must be none of the object's.
        let key = |spaces: usize| {
            Cut {
                bytes: 0..0,
                what: What::Members(count, spaces),
                node: 0,
            }
            .text()
        };
        let taken = |spaces: usize| {
            let key = key(spaces);
            let key = key.split_once(':').map_or("", |(key, _)| key);
            children.iter().any(|child| self.tree.key(*child) == key)
        };
        What::Members(count, (0..=children.len()).find(|spaces| !taken(*spaces)).unwrap_or(0))
    }
}

/// A single child is worth opening however little there is.
fn is_one_that_can_be_cut(children: &[usize], tree: &Tree<'_>, room: usize) -> bool {
    let [only] = children else { return false };
    let node = &tree.nodes[*only];
    node.kind != Kind::Scalar && room > 2 * MARK + (node.start - node.member)
}

/// The level to which parts can be filled so that they take `room` bytes together.
fn level(count: usize, size: &impl Fn(usize) -> usize, room: usize) -> usize {
    if count == 0 || room / count == 0 {
        return 0;
    }
    let mut sizes: Vec<usize> = (0..count).map(size).collect();
    sizes.sort_unstable();
    let mut left = room;
    for (at, size) in sizes.iter().enumerate() {
        let share = left / (count - at);
        if *size > share {
            return share;
        }
        left -= size;
    }
    usize::MAX
}

/// Ends the first part of a string's inside at or before `at`, not within a character or an escape.
fn part_end(inside: &str, at: usize) -> usize {
    let bytes = inside.as_bytes();
    let mut place = 0;
    while place < at.min(bytes.len()) {
        let next = place + unit_length(bytes, place);
        if next > at {
            break;
        }
        place = next;
    }
    place
}

/// Starts the last part, at most `most` bytes long, at or after `from`.
fn tail_start(inside: &str, from: usize, most: usize) -> usize {
    let bytes = inside.as_bytes();
    let aim = bytes.len().saturating_sub(most).max(from);
    let mut place = from;
    while place < aim {
        place += unit_length(bytes, place);
    }
    place.min(bytes.len())
}

/// Length of the character or escape at `at`; a pair of surrogate escapes is one.
fn unit_length(bytes: &[u8], at: usize) -> usize {
    let escape = |at: usize| bytes.get(at..at + 6).filter(|escape| escape.starts_with(b"\\u"));
    match bytes[at] {
        b'\\' => match escape(at) {
            Some(first)
                if matches!(first[2], b'd' | b'D') && matches!(first[3], b'8' | b'9' | b'a' | b'b' | b'A' | b'B') =>
            {
                if escape(at + 6).is_some() {
                    12
                } else {
                    6
                }
            }
            Some(_) => 6,
            None => 2,
        },
        0..0x80 => 1,
        0x80..0xe0 => 2,
        0xe0..0xf0 => 3,
        _ => 4,
    }
}
