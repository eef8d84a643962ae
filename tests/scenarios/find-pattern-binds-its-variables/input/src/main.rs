fn main() {
    let c = shapes::Circle::new(1.0);
    report(c.area());
}

fn report(area: f64) {
    println!("{area}");
}
