//! Projects text: finds out its kind, makes the plan, chooses and writes.

use zero_contracts::tokens::{Cut, ProjectText, TextKind};
use zero_contracts::{Error, ErrorKind};

use crate::kinds::plan;
use crate::measure::Measure;
use crate::retained::{Retained, Units};
use crate::select::Selector;

/// What is shown.
pub(crate) struct Shown {
    pub text: String,
    pub tokens: u64,
    pub cuts: Vec<Cut>,
}

/// Projects what was retained of a text that does not fit.
///
/// # Errors
/// `invalid_input` if the smallest projection does not fit.
pub(crate) fn project(
    measure: &Measure,
    retained: &Retained<'_>,
    kind: TextKind,
    how: &ProjectText<'_>,
) -> Result<Shown, Error> {
    // Long lines are cut into pieces that are small against the budget.
    let longest = usize::try_from(how.budget / 2).unwrap_or(usize::MAX).clamp(48, 512);
    let units = Units::new(retained, longest);
    let plan = plan(kind, &units, how.outline, how.wanted);
    let selector = Selector::new(&units, &plan.folded, measure);
    let Some((excerpt, tokens)) = selector.choose(&plan.wishes, how.budget) else {
        return Err(too_small(how.budget, selector.least()));
    };
    let cuts = excerpt.marks.iter().filter_map(|mark| {
        Some(Cut {
            selector: mark.selector()?,
            bytes: mark.bytes.end - mark.bytes.start,
        })
    });
    Ok(Shown {
        cuts: cuts.collect(),
        text: excerpt.text,
        tokens,
    })
}

/// The error of a budget below the smallest projection.
pub(crate) fn too_small(budget: u64, least: u64) -> Error {
    Error::new(
        ErrorKind::InvalidInput,
        format!("a budget of {budget} tokens is below the smallest mark; {least} would do"),
    )
    .with_path("budget")
}
