//! The decoder: the source symbols of late, and the equations that repair symbols give for those
//! that are missing (Gauss-Jordan elimination; RFC 8681 §3.6 leaves the choice).

use super::{Combination, HEAD_LEN, MAX_WINDOW, Recovered, Sum, Symbol, field};
use crate::wire::seq::SeqNumber;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use bytes::Bytes;

/// The most equations, and with them the most lost symbols that are solved for at once.
const MAX_EQUATIONS: usize = 512;

/// What one end knows of the symbols of the other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Decoder {
    /// The number of the first of `symbols`.
    first: SeqNumber,
    /// The last source symbols, at most [`MAX_WINDOW`]; `None` for those that have not arrived.
    symbols: VecDeque<Option<Known>>,
    /// Bytes of `symbols` and `equations`, and their limit.
    bytes: usize,
    max_bytes: usize,
    /// In reduced row echelon form: each has a symbol that no other one has.
    equations: Vec<Equation>,
    recovered: VecDeque<Recovered>,
}

/// A source symbol that has arrived.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Known {
    head: [u8; HEAD_LEN],
    body: Bytes,
}

/// Missing symbols with their coefficients, none of which is 0, in order.
type Terms = Vec<(SeqNumber, u8)>;

/// What the missing symbols of a combination add up to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Equation {
    terms: Terms,
    sum: Vec<u8>,
}

impl Decoder {
    /// Nothing is known. At most `max_bytes` bytes are kept.
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self {
            first: SeqNumber(0),
            symbols: VecDeque::new(),
            bytes: 0,
            max_bytes,
            equations: Vec::new(),
            recovered: VecDeque::new(),
        }
    }

    /// From now on so many bytes are kept at most, beginning with the next symbol.
    pub(crate) fn limit(&mut self, max_bytes: usize) {
        self.max_bytes = max_bytes;
    }

    /// Symbols are numbered anew.
    pub(crate) fn restart(&mut self) {
        *self = Self::new(self.max_bytes);
    }

    /// Bytes that are kept.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// A source symbol has arrived. Its bytes are copied.
    pub(crate) fn source(&mut self, seq: SeqNumber, symbol: Symbol<'_>) {
        if self.place(seq).is_some_and(|place| self.symbols[place].is_none()) {
            self.know(seq, symbol.head, Bytes::copy_from_slice(symbol.body));
            self.solve(seq);
            self.forget_excess();
        }
    }

    /// A repair symbol has arrived.
    pub(crate) fn repair(&mut self, combination: &Combination, symbol: &[u8]) {
        // Room for the last symbol may make the first one too old.
        let is_wide = combination.len == 0 || combination.len > MAX_WINDOW;
        if is_wide || self.place(combination.end() - 1).is_none() || combination.first < self.first
        {
            return;
        }
        let mut sum = Sum::of(symbol.to_vec());
        let mut terms = Vec::new();
        for index in 0..u32::from(combination.len) {
            let seq = combination.first + index;
            let coefficient = combination.coefficient(seq);
            match &self.symbols[seq.offset_from(self.first) as usize] {
                Some(known) => known.symbol().add_to(&mut sum, coefficient),
                None if coefficient != 0 => terms.push((seq, coefficient)),
                None => {}
            }
        }
        self.insert(terms, sum);
    }

    /// The next symbol that is known again.
    pub(crate) fn pop(&mut self) -> Option<Recovered> {
        self.recovered.pop_front()
    }

    /// The place of a symbol, for which room is made; `None` if it is too old.
    fn place(&mut self, seq: SeqNumber) -> Option<usize> {
        let ahead = usize::try_from(seq.offset_from(self.first)).ok()?;
        // The numbers begin anywhere, and may jump.
        let beyond = (ahead + 1).saturating_sub(self.symbols.len() + usize::from(MAX_WINDOW));
        if beyond > 0 {
            self.symbols.clear();
            self.equations.clear();
            self.bytes = 0;
            self.first = seq;
        }
        let ahead = seq.offset_from(self.first) as usize;
        while self.symbols.len() <= ahead {
            self.symbols.push_back(None);
        }
        self.forget_excess();
        usize::try_from(seq.offset_from(self.first)).ok()
    }

    /// Forgets the oldest symbols beyond the limits.
    fn forget_excess(&mut self) {
        let is_excess = |decoder: &Self| {
            decoder.symbols.len() > usize::from(MAX_WINDOW)
                || decoder.equations.len() > MAX_EQUATIONS
                || decoder.bytes > decoder.max_bytes
        };
        while is_excess(self) && !self.symbols.is_empty() {
            self.forget_first();
        }
    }

    /// Forgets the oldest symbol, and the equations for it.
    fn forget_first(&mut self) {
        if let Some(Some(known)) = self.symbols.pop_front() {
            self.bytes -= known.len();
        }
        let first = self.first;
        self.equations.retain(|equation| {
            let is_needed = equation.terms.first().is_none_or(|(seq, _)| *seq > first);
            self.bytes -= if is_needed { 0 } else { equation.sum.len() };
            is_needed
        });
        self.first += 1;
    }

    fn know(&mut self, seq: SeqNumber, head: [u8; HEAD_LEN], body: Bytes) {
        let Ok(place) = usize::try_from(seq.offset_from(self.first)) else { return };
        if let Some(slot) = self.symbols.get_mut(place) {
            let known = Known { head, body };
            self.bytes += known.len();
            *slot = Some(known);
        }
    }

    /// Takes a symbol that is known now out of all equations.
    fn solve(&mut self, seq: SeqNumber) {
        let Some(Some(known)) = self.symbols.get(seq.offset_from(self.first) as usize) else {
            return;
        };
        let known = known.clone();
        let (with, without): (Vec<_>, Vec<_>) = core::mem::take(&mut self.equations)
            .into_iter()
            .partition(|equation| equation.coefficient(seq) != 0);
        self.equations = without;
        for equation in with {
            self.bytes -= equation.sum.len();
            let coefficient = equation.coefficient(seq);
            let Equation { mut terms, sum } = equation;
            let mut sum = Sum::of(sum);
            known.symbol().add_to(&mut sum, coefficient);
            terms.retain(|term| term.0 != seq);
            self.insert(terms, sum);
        }
    }

    /// Adds an equation, and solves what can be solved with it.
    fn insert(&mut self, mut terms: Terms, mut sum: Sum) {
        for other in &self.equations {
            let by = coefficient(&terms, other.pivot());
            if by != 0 {
                terms = added(&terms, &other.terms, by);
                sum.add(by, 0, &other.sum);
            }
        }
        // Nothing that is not known already.
        let Some(&(pivot, coefficient)) = terms.first() else { return };
        let mut equation = Equation { terms, sum: sum.total() };
        equation.scale(field::inverse(coefficient));
        for other in &mut self.equations {
            self.bytes -= other.sum.len();
            other.subtract(&equation, other.coefficient(pivot));
            self.bytes += other.sum.len();
        }
        self.bytes += equation.sum.len();
        self.equations.push(equation);
        self.take_solved();
        self.forget_excess();
    }

    /// An equation of one term is solved. In reduced form that term is in no other.
    fn take_solved(&mut self) {
        let (solved, open): (Vec<_>, Vec<_>) = core::mem::take(&mut self.equations)
            .into_iter()
            .partition(|equation| equation.terms.len() == 1);
        self.equations = open;
        for Equation { terms, mut sum } in solved {
            self.bytes -= sum.len();
            let seq = terms[0].0;
            sum.resize(sum.len().max(HEAD_LEN), 0);
            let sum = Bytes::from(sum);
            let mut head = [0; HEAD_LEN];
            head.copy_from_slice(&sum[..HEAD_LEN]);
            let body = sum.slice(HEAD_LEN..);
            self.know(seq, head, body.clone());
            self.recovered.push_back(Recovered { seq, head, body });
        }
    }
}

impl Known {
    fn len(&self) -> usize {
        HEAD_LEN + self.body.len()
    }

    fn symbol(&self) -> Symbol<'_> {
        Symbol { head: self.head, body: &self.body }
    }
}

impl Equation {
    /// The symbol for which the equation stands: its first one.
    fn pivot(&self) -> SeqNumber {
        self.terms[0].0
    }

    fn coefficient(&self, seq: SeqNumber) -> u8 {
        coefficient(&self.terms, seq)
    }

    fn scale(&mut self, by: u8) {
        self.terms.iter_mut().for_each(|term| term.1 = field::product(term.1, by));
        field::scale(&mut self.sum, by);
    }

    /// Subtracts, which is adding, another equation times a coefficient.
    fn subtract(&mut self, other: &Self, by: u8) {
        if by == 0 {
            return;
        }
        self.terms = added(&self.terms, &other.terms, by);
        if self.sum.len() < other.sum.len() {
            self.sum.resize(other.sum.len(), 0);
        }
        field::add_scaled(&mut self.sum, by, &other.sum);
    }
}

fn coefficient(terms: &Terms, seq: SeqNumber) -> u8 {
    let place = terms.binary_search_by(|term| term.0.offset_from(seq).cmp(&0));
    place.map_or(0, |place| terms[place].1)
}

/// Adds terms times a coefficient to others.
fn added(ours: &Terms, theirs: &Terms, by: u8) -> Terms {
    let mut terms = Vec::with_capacity(ours.len() + theirs.len());
    let (mut ours, mut theirs) = (ours.iter().peekable(), theirs.iter().peekable());
    loop {
        let (mine, its) = (ours.peek().copied(), theirs.peek().copied());
        let (seq, coefficient) = match (mine, its) {
            (None, None) => break,
            (Some(&(seq, mine)), Some(&(other, its))) if seq == other => {
                ours.next();
                theirs.next();
                (seq, mine ^ field::product(its, by))
            }
            (Some(&(seq, mine)), its) if its.is_none_or(|its| seq < its.0) => {
                ours.next();
                (seq, mine)
            }
            (_, Some(&(seq, its))) => {
                theirs.next();
                (seq, field::product(its, by))
            }
            (Some(_), None) => break,
        };
        if coefficient != 0 {
            terms.push((seq, coefficient));
        }
    }
    terms
}
