//! Confinement and tiers: what is promised is enforced, and what is missing is said.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use zero_supervisor::{
    CountTier, EndReason, Error, FileTier, Io, Overlay, Processes, Spec, Tree, TreeTier, View, confinement,
};

use crate::programs;
use crate::support::{Setting, adversary, in_setting, is_root, run, run_until_up, shell, store, survivors, token};

crate::scenarios! {
    writes_stay_inside;
    a_confined_command_cannot_signal_its_supervisor;
    the_tier_is_named;
}

/// A directory this user may write to, with a workspace, a store and something else in it, outside the temporary ones.
struct Places {
    dir: tempfile::TempDir,
}

impl Places {
    fn new() -> Self {
        let dir = store();
        for name in ["workspace", "store", "elsewhere"] {
            fs::create_dir(dir.path().join(name)).expect("mkdir");
        }
        fs::write(dir.path().join("elsewhere/file"), "kept").expect("write");
        Self { dir }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        fs::canonicalize(self.dir.path()).expect("real").join(name)
    }

    /// Confined to the workspace, the devices, and what else is given.
    fn confine(&self, mut spec: Spec, extra: &[&Path]) -> Spec {
        let extra: Vec<_> = extra.iter().map(|path| path.to_path_buf()).collect();
        spec.cwd = self.path("workspace");
        // `elsewhere` is no store, but must not become writable only because this test lives in a temporary directory.
        let out = [self.path("store"), self.path("elsewhere")];
        spec.files = confinement::landlock(&self.path("workspace"), &spec.env, &extra, &out, true);
        spec
    }
}

fn has_landlock(places: &Places) -> bool {
    match Processes::new(programs::supervisor()).spawn(places.confine(Spec::new(["true"], "/"), &[])) {
        Err(Error::Unsupported(why)) => {
            eprintln!("SKIPPED: {why}");
            false
        }
        Ok(running) => {
            running.drive(Io::new(&mut io::sink(), &mut io::sink()));
            true
        }
        Err(other) => panic!("{other}"),
    }
}

fn writes_stay_inside(setting: Setting) {
    let places = Places::new();
    if !has_landlock(&places) {
        return;
    }
    let (store, elsewhere) = (places.path("store"), places.path("elsewhere"));
    let line = format!(
        "mkdir -p a/b && echo in > a/b/file && mv a/b/file moved && ln moved a/hard && ln -s moved soft && rm a/hard && \
         rmdir a/b a && : > /dev/null && echo x > /dev/full; echo wrote $?; \
         for to in {store}/x {elsewhere}/x {elsewhere}/file; do (echo bad > $to) 2>&1; done; \
         rm {elsewhere}/file; mv {elsewhere}/file there; ln -s /etc/passwd {store}/link; \
         cat {elsewhere}/file; echo; ls",
        store = store.display(),
        elsewhere = elsewhere.display(),
    );
    let ran = run(places.confine(shell(setting, &line), &[]));
    let out = String::from_utf8_lossy(&ran.stdout).into_owned();
    let text = out.clone() + &String::from_utf8_lossy(&ran.stderr);
    assert!(text.contains("wrote 1"), "/dev/full is writable and full: {text}");
    assert_eq!(text.matches("Permission denied").count(), 6, "{text}");
    assert!(
        out.contains("kept\nmoved\nsoft\n"),
        "reading is free, moves inside work: {text}"
    );
    assert_eq!(fs::read_dir(&store).expect("store").count(), 0);
    assert_eq!(fs::read_dir(&elsewhere).expect("elsewhere").count(), 1);
    assert_eq!(ran.outcome.tiers.files, FileTier::Landlock);

    // A configured path, and a tool chain's cache under the default rules.
    let home = places.path("home");
    fs::create_dir_all(home.join(".cargo/registry")).expect("mkdir");
    fs::create_dir_all(home.join(".cache/go-build")).expect("mkdir");
    fs::create_dir(home.join("free")).expect("mkdir");
    let mut spec = shell(
        setting,
        "touch ~/.cargo/.package-cache ~/.cargo/registry/x ~/.cache/go-build/y ~/free/z && touch ~/.profile; echo $?; \
         : > /dev/shm/$$.zero && rm /dev/shm/$$.zero && echo shm",
    );
    spec.env
        .retain(|(name, _)| !name.to_string_lossy().contains("CACHE") && name != "CARGO_HOME" && name != "HOME");
    spec.env.push(("HOME".into(), home.clone().into_os_string()));
    let mut spec = places.confine(spec, &[&home.join("free")]);
    // Everything in this test lies under the temporary directory, which is writable by default.
    if let zero_supervisor::Files::Landlock { writable, .. } = &mut spec.files {
        writable.retain(|path| *path != home);
    }
    let ran = run(spec);
    assert_eq!(
        String::from_utf8_lossy(&ran.stdout),
        "1\nshm\n",
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    assert!(home.join("free/z").exists() && !home.join(".profile").exists());
}

fn a_confined_command_cannot_signal_its_supervisor(setting: Setting) {
    let places = Places::new();
    if !has_landlock(&places) {
        return;
    }
    let token = token();
    // Ended once it has tried: on a busy machine it may take its time to get there.
    let ran = run_until_up(places.confine(adversary(setting, &["attack", &token, "9", "both"]), &[]));
    if !ran.outcome.tiers.signals_scoped {
        eprintln!("SKIPPED: this kernel's Landlock does not scope signals");
        return;
    }
    assert!(
        ran.outcome.cleanup.is_clean() && ran.outcome.reason == EndReason::Timeout,
        "{ran:?}"
    );
    if setting.tier != TreeTier::PidNamespace {
        assert_eq!(ran.stdout, b"hit \n", "both were out of reach");
    }
    assert_eq!(survivors(&token), [0_i32; 0]);
}

fn the_tier_is_named(setting: Setting) {
    let ran = run(shell(setting, "echo $$"));
    let tiers = ran.outcome.tiers;
    assert_eq!((tiers.tree, tiers.files), (setting.tier, FileTier::None));
    let pid: i32 = String::from_utf8_lossy(&ran.stdout).trim().parse().expect("a number");
    assert_eq!(setting.tier == TreeTier::PidNamespace, pid < 10, "{pid}");
    if setting.tier == TreeTier::Rlimits && setting.root {
        assert_eq!(tiers.count, CountTier::Sampled, "resource limits do not bind root");
    }
    // Nobody changes what the command is: the same user, and `/proc` shows its own processes.
    let ran = run(shell(setting, "id -u; cat /proc/self/stat | cut -d' ' -f4; echo $$"));
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    let words: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(words[0], rustix::process::geteuid().as_raw().to_string());
    assert_eq!(words.len(), 3, "{text}");
}

/// In every hierarchy that has one for it: what it starts is held and counted from its first instant on.
#[test]
fn a_command_is_in_its_cgroups_when_its_program_begins() {
    let setting = Setting {
        tier: TreeTier::Cgroup,
        root: true,
    };
    let name = concat!(module_path!(), "::a_command_is_in_its_cgroups_when_its_program_begins");
    in_setting(name, setting, |setting| {
        let ran = run(shell(setting, "cat /proc/self/cgroup"));
        let text = String::from_utf8_lossy(&ran.stdout).into_owned();
        let place = |controller: &str| {
            text.lines()
                .find_map(|line| line.split_once(':')?.1.strip_prefix(controller)?.strip_prefix(':'))
                .map(|place| place.rsplit('/').next().unwrap_or_default().to_owned())
        };
        let own = place("").expect("every process is in one of v2");
        assert!(own.starts_with("zero-"), "{text}");
        let by_v1 = place("pids").is_some_and(|place| place == own);
        let max = Path::new("/sys/fs/cgroup/cgroup.controllers");
        let by_v2 = fs::read_to_string(max).is_ok_and(|names| names.contains("pids"));
        assert_eq!(ran.outcome.tiers.count == CountTier::Kernel, by_v1 || by_v2, "{text}");
    });
}

/// The documented defaults are enough for a real tool chain: cargo locks its caches and writes its target directory.
#[test]
fn a_confined_cargo_builds() {
    let places = Places::new();
    if !has_landlock(&places) {
        return;
    }
    let workspace = places.path("workspace");
    fs::create_dir(workspace.join("src")).expect("mkdir");
    fs::write(workspace.join("src/main.rs"), "fn main() { println!(\"built\"); }").expect("write");
    fs::write(
        workspace.join("Cargo.toml"),
        "[package]\nname = \"tiny\"\nedition = \"2024\"\n[workspace]\n",
    )
    .expect("write");
    let mut spec = Spec::new(["cargo", "run", "--quiet", "--offline"], "/");
    // The tests' own cargo must not lead this one to its target directory.
    spec.env
        .retain(|(name, _)| !name.to_string_lossy().starts_with("CARGO_TARGET"));
    let ran = run(places.confine(spec, &[]));
    let stderr = String::from_utf8_lossy(&ran.stderr);
    if matches!(
        ran.outcome.termination,
        zero_supervisor::Termination::SpawnFailed { .. }
    ) {
        eprintln!("SKIPPED: no cargo in PATH");
        return;
    }
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "built\n", "{stderr}");
    assert!(workspace.join("target/debug/tiny").exists());
    // The store of this test lies in the temporary directory, so the command got one of its own, for as long as its owner.
    let ran = run(places.confine(
        Spec::shell("echo $TMPDIR; ls -d $TMPDIR && echo x > $TMPDIR/x && echo ok", "/"),
        &[],
    ));
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.len() == 3 && lines[0] == lines[1] && lines[2] == "ok", "{ran:?}");
    assert!(!Path::new(lines[0]).exists(), "gone with its owner");
}

#[test]
fn a_required_tier_that_is_missing_is_an_error_not_a_downgrade() {
    // No ordinary user of a plain machine may make cgroups; where one may, the tier is simply there.
    let wanted = Setting {
        tier: TreeTier::Cgroup,
        root: false,
    };
    crate::support::in_setting_of_any_tier(
        concat!(
            module_path!(),
            "::a_required_tier_that_is_missing_is_an_error_not_a_downgrade"
        ),
        wanted,
        |_| {
            assert!(!is_root());
            let mut spec = Spec::new(["true"], "/");
            spec.tree = Tree::required(TreeTier::Cgroup);
            match Processes::new(programs::supervisor()).spawn(spec) {
                Err(Error::Unsupported(why)) => assert!(why.contains("Cgroup"), "{why}"),
                Ok(running) => assert_eq!(running.tiers().tree, TreeTier::Cgroup),
                Err(other) => panic!("{other}"),
            }
            // With all tiers wanted the next best is taken, and named.
            let tiers = run(Spec::new(["true"], "/")).outcome.tiers;
            assert!(matches!(
                tiers.tree,
                TreeTier::Cgroup | TreeTier::PidNamespace | TreeTier::Rlimits
            ));
        },
    );
}

#[test]
fn another_program_in_place_of_the_supervisor_is_a_clear_error() {
    let dir = store();
    let fake = dir.path().join("zero-supervisor");
    for (script, expected) in [
        ("#!/bin/sh\nexit 0\n", "closed"),
        (
            "#!/bin/sh\nprintf 'ZSUP\\007\\000\\000\\000\\000\\000' >&0\n",
            "version 7",
        ),
        ("#!/bin/sh\nprintf 'Usage: something else' >&0\n", "malformed"),
    ] {
        fs::write(&fake, script).expect("write");
        fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).expect("chmod");
        match Processes::new(&fake).spawn(Spec::new(["true"], "/")) {
            Err(Error::Wire(error)) => assert!(error.to_string().contains(expected), "{expected}: {error}"),
            other => panic!("{expected}: {other:?}"),
        }
    }
}

crate::scenarios! {
    a_private_view_keeps_the_live_tree;
}

fn a_private_view_keeps_the_live_tree(setting: Setting) {
    let dir = store();
    let place = fs::canonicalize(dir.path()).expect("real");
    let (root, upper, work) = (
        place.join("work, with: odd\\name"),
        place.join("upper"),
        place.join("scratch"),
    );
    for path in [&root, &upper, &work, &root.join("target"), &root.join("sub")] {
        fs::create_dir(path).expect("mkdir");
    }
    fs::write(root.join("kept"), "old").expect("write");
    fs::write(root.join("gone"), "old").expect("write");
    let processes = Processes::new(programs::supervisor());
    if let Some(why) = processes.why_no_overlay(&root, &place).expect("probe") {
        eprintln!("SKIPPED: no overlay for this user on this file system: {why}");
        return;
    }
    assert_eq!(
        fs::read_dir(&place).expect("place").count(),
        3,
        "the probe leaves nothing"
    );
    let mounts = std::cell::Cell::new(0);
    let spec = |line: &str| {
        mounts.set(mounts.get() + 1);
        let work = work.join(mounts.get().to_string());
        fs::create_dir(&work).expect("mkdir");
        let mut spec = shell(setting, line);
        spec.cwd = root.join("sub");
        spec.view = View::Overlay(Overlay {
            root: root.clone(),
            upper: upper.clone(),
            work: work.clone(),
            through: vec!["target".into(), "absent".into()],
        });
        spec.files = confinement::landlock(&root, &spec.env, &[], &[upper.clone(), work.clone()], false);
        spec
    };
    let ran = run(spec(
        "pwd; echo new > ../kept; rm ../gone; echo made > file; echo live > ../target/out; mv file ../moved; cat ../kept",
    ));
    let text = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    assert_eq!(text, format!("{}\nnew\n", root.join("sub").display()));
    // The live tree is as it was, but for what is passed through.
    assert_eq!(fs::read_to_string(root.join("kept")).expect("kept"), "old");
    assert!(root.join("gone").exists() && !root.join("moved").exists());
    assert_eq!(fs::read_to_string(root.join("target/out")).expect("out"), "live\n");
    // The effects are in the upper layer, and the next command builds on them.
    assert_eq!(fs::read_to_string(upper.join("kept")).expect("upper"), "new\n");
    let ran = run(spec("cat ../kept ../moved; ls ..; ls ../gone"));
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert_eq!(
        text,
        "new\nmade\nkept\nmoved\nsub\ntarget\n",
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    // One that starts meanwhile joins the same mounts: each waits for the other's file.
    let wait = |mine: &str, other: &str| {
        format!(
            "echo {mine} > {mine}; for i in $(seq 400); do [ -e {other} ] && exec cat {other}; sleep 0.02; done; exit 1"
        )
    };
    let first = processes.spawn(spec(&wait("x", "y"))).expect("spawn");
    let mut second = spec(&wait("y", "x"));
    second.view = View::Mounted(first.mounted().expect("the first one mounts"));
    let second = processes.spawn(second).expect("spawn");
    let (one, two) = std::thread::scope(|scope| {
        let drive = |running: zero_supervisor::Running| {
            let mut out = Vec::new();
            running.drive(Io::new(&mut out, &mut io::sink()));
            out
        };
        let one = scope.spawn(move || drive(first));
        (drive(second), one.join().expect("thread"))
    });
    assert_eq!((one, two), (b"x\n".to_vec(), b"y\n".to_vec()));
    assert!(upper.join("sub/x").exists() && !root.join("sub/x").exists());
    assert!(
        !fs::read_to_string("/proc/self/mountinfo")
            .expect("mounts")
            .contains("odd"),
        "nothing stays mounted"
    );
}
