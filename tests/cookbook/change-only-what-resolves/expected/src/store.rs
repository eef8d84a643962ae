pub struct Store;

impl Store {
    pub fn open() -> Self {
        Store
    }
}
