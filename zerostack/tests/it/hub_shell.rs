//! Random shell programs: a cell that throws after one leaves the tree and its repository as they were, and a cell that
//! completes publishes exactly what the program does by itself. `ZEROSTACK_SHELL_PROGRAMS` sets how many (default 50).

use std::path::Path;
use std::process::Command;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use zero_contracts::response::{Disposition, Outcome};

use zerostack::Capture;

use crate::hub_support::{Tree, Workspace, differences, has_private_view, tree};

/// Names that steps choose from; the last one is not UTF-8.
const NAMES: [&str; 6] = ["a", "b", "d/x", "d/e/y", "new", "$(printf 'odd\\377')"];
const DIRECTORIES: [&str; 4] = ["d", "d/e", "fresh", "fresh/deep"];

fn step() -> impl Strategy<Value = String> {
    let name = || proptest::sample::select(&NAMES[..]);
    let directory = || proptest::sample::select(&DIRECTORIES[..]);
    prop_oneof![
        (name(), 0..1000_u32).prop_map(|(name, n)| format!("echo {n} > \"{name}\"")),
        (name(), 0..1000_u32).prop_map(|(name, n)| format!("echo {n} >> \"{name}\"")),
        (name(), name()).prop_map(|(from, to)| format!("mv -f \"{from}\" \"{to}\"")),
        (directory(), directory()).prop_map(|(from, to)| format!("mv {from} {to}")),
        name().prop_map(|name| format!("rm -f \"{name}\"")),
        directory().prop_map(|directory| format!("rm -rf {directory}")),
        directory().prop_map(|directory| format!("mkdir -p {directory}")),
        directory().prop_map(|directory| format!("rmdir {directory}")),
        (name(), prop_oneof![Just("600"), Just("755"), Just("640")])
            .prop_map(|(name, mode)| format!("[ -L \"{name}\" ] || chmod {mode} \"{name}\"")),
        directory().prop_map(|directory| format!("chmod 750 {directory}")),
        (name(), name()).prop_map(|(target, link)| format!("ln -sfn \"{target}\" \"{link}\"")),
        (name(), name()).prop_map(|(from, to)| format!("cp -P \"{from}\" \"{to}\"")),
        name().prop_map(|name| format!("sed -i s/1/one/ \"{name}\"")),
        prop_oneof![
            Just("git add -A"),
            Just("git commit -qm more"),
            Just("git checkout -q -b side"),
            Just("git checkout -qf HEAD~0 -- ."),
            Just("git gc -q --prune=now"),
            Just("git stash -q"),
        ]
        .prop_map(|git| format!("{git}; {OLD_INDEX}")),
    ]
}

/// One step of a cell that goes from edits to commands and back, each seeing what the others did.
#[derive(Clone, Debug)]
enum Step {
    Shell(String),
    Create(u8),
    Move(u8, u8),
    MoveDirectory(&'static str, u8),
    Remove(u8),
}

impl Step {
    /// As a part of a cell.
    fn in_a_cell(&self, environment: &str) -> String {
        let tried = |call: String| format!("try {{ await {call} }} catch (e) {{}}\n");
        match self {
            Self::Shell(line) => format!(
                "await z.run({}, {{env: {environment}}});\n",
                serde_json::to_string(line).expect("a string")
            ),
            Self::Create(n) => tried(format!("z.edit('edited/{n}', {{create: '{n}'}})")),
            Self::Move(n, m) => tried(format!("z.apply([{{move: ['edited/{n}', 'edited/{m}']}}])")),
            Self::MoveDirectory(from, n) => tried(format!("z.apply([{{move: ['{from}', 'edited/dir{n}']}}])")),
            Self::Remove(n) => tried(format!("z.edit('edited/{n}', {{remove: true}}, {{expect: 'any'}})")),
        }
    }

    /// As a shell does it.
    fn in_a_shell(&self) -> String {
        match self {
            Self::Shell(line) => line.clone(),
            Self::Create(n) => format!("[ -e edited/{n} ] || {{ mkdir -p edited; printf {n} > edited/{n}; }}"),
            Self::Move(n, m) => format!("[ ! -e edited/{n} ] || [ -e edited/{m} ] || mv edited/{n} edited/{m}"),
            Self::MoveDirectory(from, n) => {
                format!("[ ! -d {from} ] || [ -e edited/dir{n} ] || {{ mkdir -p edited; mv {from} edited/dir{n}; }}")
            }
            Self::Remove(n) => format!("rm -f edited/{n}"),
        }
    }
}

fn any_step() -> impl Strategy<Value = Step> {
    let number = || 0..4_u8;
    prop_oneof![
        4 => step().prop_map(Step::Shell),
        1 => prop_oneof![
            Just("rm -rf edited"), Just("mv edited fresh"), Just("mv d edited"), Just("chmod 700 edited"), Just("rm -f edited/0 edited/1"),
            Just("echo more >> edited/0"), Just("rm -rf edited/dir0/e"), Just("mv edited/dir1 d"), Just("rm -rf d; mkdir d; echo x > d/x")
        ].prop_map(|line| Step::Shell(line.to_owned())),
        2 => number().prop_map(Step::Create),
        1 => (number(), number()).prop_map(|(n, m)| Step::Move(n, m)),
        1 => (prop_oneof![Just("d"), Just("fresh"), Just("d/e")], 0..2_u8).prop_map(|(from, n)| Step::MoveDirectory(from, n)),
        1 => number().prop_map(Step::Remove),
    ]
}

/// An index older than all files: git then looks into each file. Otherwise a file moved over one of the same size and second
/// is unchanged to git or not, by whether the index was written in that second too.
const OLD_INDEX: &str = "touch -c -d @1 .git/index";

/// A committed repository of a few files. Commits are made at a fixed time, so that equal programs make equal objects; git
/// looks at sizes and times alone, for whether a changed mode shows in `ctime` is a matter of milliseconds; and the files'
/// own times are apart, for git writes its index more than once in some commands.
const SETUP: &str = "mkdir -p d/e; echo 1 > a; echo 2 > b; echo 3 > d/x; echo 4 > d/e/y; ln -s a l; chmod 600 b;
    touch -d @1577800001 a; touch -d @1577800002 b; touch -d @1577800003 d/x; touch -d @1577800004 d/e/y;
    git init -q -b main .; git config core.checkStat minimal; git add -A; git commit -qm first; touch -c -d @1 .git/index";

const ENVIRONMENT: [(&str, &str); 9] = [
    ("GIT_AUTHOR_DATE", "2020-01-01T00:00:00Z"),
    ("GIT_COMMITTER_DATE", "2020-01-01T00:00:00Z"),
    ("GIT_AUTHOR_NAME", "t"),
    ("GIT_AUTHOR_EMAIL", "t@t"),
    ("GIT_COMMITTER_NAME", "t"),
    ("GIT_COMMITTER_EMAIL", "t@t"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("LC_ALL", "C"),
];

fn plainly(directory: &Path, program: &str) {
    let done = Command::new("sh")
        .args(["-c", program])
        .current_dir(directory)
        .envs(ENVIRONMENT)
        .output();
    done.expect("sh runs");
}

/// What is compared after a completed cell: git's index and logs hold times and inodes, which differ between two copies.
fn without_git(tree: Tree) -> Tree {
    tree.into_iter().filter(|(path, _)| !path.starts_with(".git")).collect()
}

fn programs() -> u32 {
    std::env::var("ZEROSTACK_SHELL_PROGRAMS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(50)
}

fn run(cases: u32, test: impl Fn(&str) -> Result<(), TestCaseError>) {
    let config = Config {
        cases,
        max_shrink_iters: 40,
        failure_persistence: None,
        ..Config::default()
    };
    let program = vec(step(), 1..8).prop_map(|steps| steps.join("; ") + "; true");
    if let Err(error) = TestRunner::new(config).run(&program, |program| test(&program)) {
        panic!("{error}");
    }
}

fn cell(program: &str, after: &str) -> String {
    let environment: std::collections::BTreeMap<_, _> = ENVIRONMENT.into_iter().collect();
    format!(
        "await z.run({}, {{env: {}}}); {after}",
        serde_json::to_string(program).expect("a string"),
        serde_json::to_string(&environment).expect("a map")
    )
}

#[test]
fn a_throw_after_a_random_program_leaves_tree_and_repository_as_they_were() {
    throws(Capture::Baseline);
}

#[test]
fn a_throw_after_a_random_program_in_a_private_view_leaves_tree_and_repository_as_they_were() {
    if has_private_view() {
        throws(Capture::RequirePrivate);
    }
}

fn throws(capture: Capture) {
    run(programs(), |program| {
        let ws = Workspace::with(&[], |config| config.capture = capture);
        plainly(ws.root.path(), SETUP);
        let before = ws.tree();
        let response = ws.run(&cell(program, "throw new Error('on purpose')"));
        let error = response.error.expect("it throws");
        prop_assert!(error.detail.contains("on purpose"), "{}\n{:?}", program, error);
        let differences = differences(&ws.tree(), &before);
        prop_assert!(differences.is_empty(), "{program}\n{differences:#?}");
        let sound = Command::new("git")
            .args(["fsck", "--strict"])
            .current_dir(ws.root.path())
            .output();
        prop_assert!(sound.expect("git runs").status.success(), "{program}");
        Ok(())
    });
}

#[test]
fn a_completed_cell_publishes_what_the_program_does_by_itself() {
    completes(Capture::Baseline);
}

#[test]
fn a_completed_cell_publishes_what_the_program_does_in_a_private_view() {
    if has_private_view() {
        completes(Capture::RequirePrivate);
    }
}

fn completes(capture: Capture) {
    run(programs() / 2, |program| {
        let ws = Workspace::with(&[], |config| config.capture = capture);
        let plain = tempfile::tempdir().expect("a directory");
        for root in [ws.root.path(), plain.path()] {
            plainly(root, SETUP);
        }
        plainly(plain.path(), program);
        let response = ws.run(&cell(program, ""));
        prop_assert_eq!(
            response.outcome,
            Outcome::Completed,
            "{}\n{:?}",
            program,
            response.error
        );
        prop_assert_ne!(response.effects.disposition, Disposition::Restored);
        let differences = differences(&without_git(ws.tree()), &without_git(tree(plain.path())));
        prop_assert!(
            differences.is_empty(),
            "{}
{:#?}",
            program,
            differences
        );
        let log = |root: &Path| {
            let output = Command::new("git")
                .args(["log", "--all", "--format=%H"])
                .current_dir(root)
                .output();
            String::from_utf8(output.expect("git runs").stdout).expect("hexadecimal digits")
        };
        prop_assert_eq!(log(ws.root.path()), log(plain.path()), "{}", program);
        Ok(())
    });
}

#[test]
fn edits_and_commands_in_turns_do_what_a_shell_does() {
    in_turns(Capture::Baseline);
}

#[test]
fn edits_and_commands_in_turns_do_in_a_private_view_what_a_shell_does() {
    if has_private_view() {
        in_turns(Capture::RequirePrivate);
    }
}

fn in_turns(capture: Capture) {
    let environment: std::collections::BTreeMap<_, _> = ENVIRONMENT.into_iter().collect();
    let environment = serde_json::to_string(&environment).expect("a map");
    let config = Config {
        cases: programs() / 2,
        max_shrink_iters: 60,
        failure_persistence: None,
        ..Config::default()
    };
    let tested = TestRunner::new(config).run(&vec(any_step(), 1..8), |steps| {
        let ws = Workspace::with(&[], |config| config.capture = capture);
        let plain = tempfile::tempdir().expect("a directory");
        for root in [ws.root.path(), plain.path()] {
            plainly(root, SETUP);
        }
        let mut cell = String::new();
        for step in &steps {
            plainly(plain.path(), &step.in_a_shell());
            cell += &step.in_a_cell(&environment);
        }
        let response = ws.run(&cell);
        prop_assert_eq!(&response.error, &None, "{:?}", steps);
        let differences = differences(&without_git(ws.tree()), &without_git(tree(plain.path())));
        prop_assert!(differences.is_empty(), "{steps:#?}\n{differences:#?}");
        Ok(())
    });
    if let Err(error) = tested {
        panic!("{error}");
    }
}
