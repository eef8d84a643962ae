return input.numbers.reduce((a, b) => a + b);
