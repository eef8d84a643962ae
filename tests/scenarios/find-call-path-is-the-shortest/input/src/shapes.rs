pub struct Circle {
    pub radius: f64,
}

impl Circle {
    pub fn new(radius: f64) -> Self {
        Self { radius }
    }

    pub fn area(&self) -> f64 {
        square(self.radius) * 3.0
    }
}

fn square(x: f64) -> f64 {
    x * x
}
