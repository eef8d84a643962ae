pub fn fresh() {}
