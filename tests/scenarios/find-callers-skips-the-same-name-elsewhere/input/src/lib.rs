pub fn open() {}

pub fn run() {
    open();
}

pub fn other(open: u32) -> u32 {
    open + 1
}
