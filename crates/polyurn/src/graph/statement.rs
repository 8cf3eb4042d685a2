//! Statements of model text: chains of groups of nodes, and ties.

use super::lexer::{Join, Kind, Lexer, Token};
use super::names::shown;
use super::spec::Size;
use crate::error::{Error, Result};
use std::ops::Range;

/// A node as one statement names it.
#[derive(Debug, Clone)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) span: Range<usize>,
    pub(super) size: Option<(Size, Range<usize>)>,
}

/// One statement.
#[derive(Debug, Clone)]
pub(super) enum Statement {
    /// Groups of nodes and the arrows between them, with their places; one group alone just names its nodes.
    Chain { groups: Vec<Vec<Named>>, arrows: Vec<(Join, Range<usize>)> },
    /// Nodes that share one table.
    Tie(Vec<Named>),
}

/// The statements of `text` from byte `start` on; empty ones are left out.
pub(super) fn parse_statements(text: &str, start: usize) -> Result<Vec<Statement>> {
    let tokens = Lexer { text, at: start }.tokens()?;
    tokens
        .split(|token| token.kind == Kind::Separator)
        .filter(|tokens| !tokens.is_empty())
        .map(|tokens| StatementParser { text, tokens, at: 0 }.parse())
        .collect()
}

struct StatementParser<'a> {
    text: &'a str,
    tokens: &'a [Token],
    at: usize,
}

impl StatementParser<'_> {
    fn parse(mut self) -> Result<Statement> {
        let mut groups = vec![self.group()?];
        let mut joins: Vec<(Join, Range<usize>)> = Vec::new();
        while let Some(token) = self.tokens.get(self.at) {
            match &token.kind {
                Kind::Join(join) => joins.push((*join, token.span.clone())),
                _ => return Err(self.unexpected()),
            }
            self.at += 1;
            groups.push(self.group()?);
        }
        let is_tie = |(join, _): &(Join, Range<usize>)| *join == Join::Tie;
        match joins.iter().find(|join| is_tie(join)) {
            None => Ok(Statement::Chain { groups, arrows: joins }),
            Some(_) if joins.iter().all(is_tie) => self.tie(groups),
            Some((_, span)) => {
                let message = "`~` cannot share a statement with arrows; write the tie apart: `a -> b c; b ~ c`";
                Err(Error::model_at(message, self.text, span.clone()))
            }
        }
    }

    fn tie(&self, groups: Vec<Vec<Named>>) -> Result<Statement> {
        let mut members = Vec::with_capacity(groups.len());
        for group in groups {
            if let Some(second) = group.get(1) {
                let message = format!("expected `~` before {}; a tie is written `i ~ j ~ k`", shown(&second.name));
                return Err(Error::model_at(message, self.text, second.span.clone()));
            }
            members.extend(group);
        }
        Ok(Statement::Tie(members))
    }

    fn group(&mut self) -> Result<Vec<Named>> {
        let mut group = vec![self.node()?];
        while let Some(token) = self.tokens.get(self.at) {
            match token.kind {
                Kind::Comma => {
                    self.at += 1;
                    group.push(self.node()?);
                }
                Kind::Name(_) => group.push(self.node()?),
                _ => break,
            }
        }
        Ok(group)
    }

    fn node(&mut self) -> Result<Named> {
        let Some(Token { kind: Kind::Name(name), span }) = self.tokens.get(self.at) else {
            return Err(self.name_missing());
        };
        self.at += 1;
        let mut named = Named { name: name.clone(), span: span.clone(), size: None };
        if let Some(Token { kind: Kind::Sizes(size), span }) = self.tokens.get(self.at) {
            named.size = Some((size.clone(), span.clone()));
            self.at += 1;
        }
        Ok(named)
    }

    fn name_missing(&self) -> Error {
        let before = self.at.checked_sub(1).map(|at| &self.tokens[at]);
        let (message, span) = match (before, self.tokens.get(self.at)) {
            (_, Some(Token { kind: Kind::Sizes(_), span })) => {
                ("a size must follow a name: `name[4]`".to_owned(), span.clone())
            }
            (None, Some(found)) => (format!("expected a name before {}", describe(found)), found.span.clone()),
            (Some(before), Some(found)) => {
                (format!("expected a name after {}, found {}", describe(before), describe(found)), found.span.clone())
            }
            (Some(before), None) => {
                let end = if self.text[before.span.end..].trim().is_empty() { "text" } else { "statement" };
                let message = format!("expected a name after {}, found the end of the {end}", describe(before));
                (message, before.span.clone())
            }
            (None, None) => ("expected a name".to_owned(), 0..0),
        };
        Error::model_at(message, self.text, span)
    }

    /// The error for a token that no group and no join can take: a second size after a name.
    fn unexpected(&self) -> Error {
        let found = &self.tokens[self.at];
        let message = match found.kind {
            Kind::Sizes(_) => "this name has a size already; drop one of the two".to_owned(),
            _ => format!("{} is out of place; expected `->`, `<-`, `~` or `;`", describe(found)),
        };
        Error::model_at(message, self.text, found.span.clone())
    }
}

fn describe(token: &Token) -> String {
    match &token.kind {
        Kind::Name(name) => shown(name),
        Kind::Sizes(_) => "a size".to_owned(),
        Kind::Join(join) => format!("`{}`", join.symbol()),
        Kind::Comma => "`,`".to_owned(),
        Kind::Separator => "`;`".to_owned(),
    }
}
