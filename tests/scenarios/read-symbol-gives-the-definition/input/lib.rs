pub struct Counter {
    count: u32,
}

impl Counter {
    /// The following number.
    pub fn next(&mut self) -> u32 {
        self.count += 1;
        self.count
    }
}
