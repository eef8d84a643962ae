//! Accounting that charges recovery: what a projection saved is what was not shown, less what had to be brought back.

use zero_contracts::tokens::{Expansion, ProjectedText, ProjectedValue, TokenCount};

/// Tokens of projections and of the expansions that followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// What everything would have cost whole.
    pub raw: u64,
    /// What the projections showed.
    pub shown: u64,
    /// What expansions brought back later.
    pub expanded: u64,
    /// Whether every number in it was counted exactly.
    pub exact: bool,
}

impl Default for Account {
    fn default() -> Self {
        Self {
            raw: 0,
            shown: 0,
            expanded: 0,
            exact: true,
        }
    }
}

impl Account {
    /// Starts with nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Charges what was shown instead of the whole.
    pub fn charge_shown(&mut self, raw: &TokenCount, shown: &TokenCount) {
        self.raw += raw.tokens;
        self.shown += shown.tokens;
        self.exact &= raw.exact && shown.exact;
    }

    /// Charges a projected text.
    pub fn charge_text(&mut self, projected: &ProjectedText) {
        self.charge_shown(&projected.raw, &projected.shown);
    }

    /// Charges a projected value.
    pub fn charge_value(&mut self, projected: &ProjectedValue) {
        self.charge_shown(&projected.raw, &projected.shown);
    }

    /// Charges a part that was brought back.
    pub fn charge_expansion(&mut self, expansion: &Expansion) {
        self.expanded += expansion.tokens.tokens;
        self.exact &= expansion.tokens.exact;
    }

    /// Adds another account.
    pub fn add(&mut self, other: &Self) {
        self.raw += other.raw;
        self.shown += other.shown;
        self.expanded += other.expanded;
        self.exact &= other.exact;
    }

    /// Returns what was saved; negative if showing and bringing back cost more than showing everything.
    pub fn net(&self) -> i64 {
        let spent = i128::from(self.shown) + i128::from(self.expanded);
        let net = i128::from(self.raw) - spent;
        i64::try_from(net).unwrap_or(if net < 0 { i64::MIN } else { i64::MAX })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bringing_everything_back_makes_the_saving_negative() {
        let count = |tokens, exact| TokenCount {
            tokens,
            encoding: "o200k_base".into(),
            exact,
        };
        let mut account = Account::new();
        account.charge_shown(&count(1000, true), &count(100, true));
        assert_eq!((account.net(), account.exact), (900, true));
        account.expanded += 950;
        assert_eq!(account.net(), -50);
        let mut sum = Account::new();
        sum.charge_shown(&count(10, false), &count(10, true));
        sum.add(&account);
        assert_eq!((sum.raw, sum.shown, sum.net(), sum.exact), (1010, 110, -50, false));
    }
}
