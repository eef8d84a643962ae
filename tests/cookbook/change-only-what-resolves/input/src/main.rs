mod store;
use store::Store;

fn main() {
    let store = Store::open();
    let door = Door::open();
}

struct Door;

impl Door {
    fn open() -> Self {
        Door
    }
}
