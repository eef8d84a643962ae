//! `zero-supervisor`: owns the processes of one command for one host. Not for people: it speaks a binary protocol on
//! standard input and is started by the `zero_supervisor` library.

fn main() {
    zero_supervisor::owner::run()
}
