//! Blocks of a page: the steps that a reader follows, and faults that keep a block from being followed.

/// Step of a page.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// Writes a file.
    Write {
        /// Name in the working directory.
        name: String,
        /// Content.
        text: String,
    },
    /// Runs a command.
    Run(Run),
}

/// Command, and its output as the page quotes it.
#[derive(PartialEq, Eq, Clone, Default, Debug)]
pub(crate) struct Run {
    /// Terminal that it runs in.
    pub(crate) terminal: String,
    /// Text for `sh`. `None`: the command in the terminal goes on.
    pub(crate) command: Option<String>,
    /// Lines that it must print.
    pub(crate) quoted: Vec<String>,
    /// Set if quoted digits depend on the machine.
    pub(crate) live: bool,
    /// Set if the command is interrupted.
    pub(crate) interrupt: bool,
    /// Expected end.
    pub(crate) end: End,
}

/// End of a command.
#[derive(PartialEq, Eq, Clone, Copy, Default, Debug)]
pub(crate) enum End {
    /// Code 0.
    #[default]
    Succeeds,
    /// Another code.
    Fails,
    /// No end until the page ends.
    Stays,
}

/// Fenced block.
struct Block {
    /// Line of its fence, from 1.
    line: usize,
    language: String,
    marks: Vec<String>,
    body: Vec<String>,
}

impl Block {
    fn new(line: usize, info: &str, body: Vec<String>) -> Self {
        let (language, marks) = info.split_once(',').unwrap_or((info, ""));
        let marks = marks.split(',').map(|mark| mark.trim().to_owned()).filter(|mark| !mark.is_empty());
        Self { line, language: language.trim().to_owned(), marks: marks.collect(), body }
    }

    fn has(&self, mark: &str) -> bool {
        self.marks.iter().any(|one| one == mark)
    }

    fn is_skipped(&self) -> bool {
        self.marks.iter().any(|mark| mark.starts_with("skip"))
    }
}

/// Languages that no shell runs.
const NOT_COMMANDS: [&str; 7] = ["text", "toml", "python", "json", "csv", "rust", "c"];
/// Marks without a reason.
const MARKS: [&str; 3] = ["live", "stays", "fails"];
/// Beginnings of lines that are commands, wherever they stand.
const COMMANDS: [&str; 6] = ["farcast ", "sudo ", "make ", "pip ", "$ ", "cargo "];

/// Returns the steps of a page, in its order.
pub(crate) fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    for block in blocks(page).iter().filter(|block| !block.is_skipped()) {
        match block.language.as_str() {
            "toml" => {
                if let Some(name) = block.body.first().and_then(|first| first.strip_prefix("# ")) {
                    steps.push(Step::Write { name: name.to_owned(), text: block.body.join("\n") + "\n" });
                }
            }
            "sh" => steps.push(Step::Run(Run {
                terminal: if block.has("stays") { format!("line {}", block.line) } else { String::new() },
                command: Some(block.body.join("\n")),
                ..run(block)
            })),
            "console" => console(block, &mut steps),
            _ => {}
        }
    }
    steps
}

/// Returns the lines of `sh` blocks, run or skipped.
pub(crate) fn commands(page: &str) -> Vec<String> {
    let shell = blocks(page).into_iter().filter(|block| block.language == "sh");
    shell.flat_map(|block| block.body).collect()
}

/// Returns the faults of a page: blocks that are commands, but neither run nor skipped with a reason.
pub(crate) fn faults(page: &str) -> Vec<String> {
    let mut faults = indented(page);
    for block in blocks(page) {
        let is_command = matches!(block.language.as_str(), "sh" | "console");
        let looks_like_one =
            block.body.iter().any(|line| COMMANDS.iter().any(|command| line.starts_with(command)));
        let mut fault = |what: &str| faults.push(format!("line {}: {what}", block.line));
        if block.language.is_empty() {
            fault("a block without a language: sh, console, text, or what it is");
        } else if !is_command && !NOT_COMMANDS.contains(&block.language.as_str()) {
            fault(&format!("nobody knows the language {:?}", block.language));
        } else if !is_command && looks_like_one {
            fault("a command in a block that is not run: make it sh or console");
        }
        for mark in block.marks.iter().filter(|mark| !MARKS.contains(&mark.as_str())) {
            match mark.strip_prefix("skip ") {
                Some(reason) if reason.split(' ').count() > 1 => {}
                Some(_) => fault("skip needs a reason in words"),
                None => fault(&format!("nobody knows the mark {mark:?}")),
            }
        }
    }
    faults
}

/// Returns the faults of code without a fence: such code cannot be marked.
fn indented(page: &str) -> Vec<String> {
    let (mut is_fenced, mut before, mut is_after_blank) = (false, "", true);
    let mut faults = Vec::new();
    for (at, line) in page.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        if is_fenced || is_fence || line.trim().is_empty() {
            is_after_blank = line.trim().is_empty();
            continue;
        }
        let is_in_list =
            before.starts_with([' ', '*', '-']) || before.starts_with(|c: char| c.is_ascii_digit());
        let is_command = COMMANDS.iter().any(|command| line.trim_start().starts_with(command));
        if line.starts_with("    ") && is_after_blank && (!is_in_list || is_command) {
            faults.push(format!("line {}: an indented block: give it a fence", at + 1));
        }
        (before, is_after_blank) = (line, false);
    }
    faults
}

/// Returns the fenced blocks, and those of `<!-- sh` to `-->`, which prepare what a reader has already.
fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        let (info, end) = if let Some(info) = text.strip_prefix("```") {
            (info, "```")
        } else if let Some(info) = text.strip_prefix("<!-- ").filter(|info| info.starts_with("sh")) {
            (info, "-->")
        } else {
            continue;
        };
        let inner = lines.by_ref().map(|(_, line)| line).take_while(|line| line.trim_start() != end);
        let body = inner.map(|line| line.get(indent..).unwrap_or_default().to_owned()).collect();
        blocks.push(Block::new(at + 1, info, body));
    }
    blocks
}

/// Returns a step with the marks of a block.
fn run(block: &Block) -> Run {
    let end = match (block.has("stays"), block.has("fails")) {
        (true, _) => End::Stays,
        (false, true) => End::Fails,
        (false, false) => End::Succeeds,
    };
    Run { live: block.has("live"), end, ..Run::default() }
}

fn console(block: &Block, steps: &mut Vec<Step>) {
    let mut lines = block.body.iter();
    while let Some(line) = lines.next() {
        if let Some((terminal, said)) = prompt(line) {
            let mut command = said.to_owned();
            while let Some(begun) = command.strip_suffix('\\') {
                command = begun.to_owned() + lines.next().expect("a line behind a backslash").trim_start();
            }
            steps.push(Step::Run(Run {
                terminal: terminal.to_owned(),
                command: (!command.is_empty()).then_some(command),
                ..run(block)
            }));
            continue;
        }
        let Some(Step::Run(Run { quoted, interrupt, .. })) = steps.last_mut() else {
            panic!("no command before {line}")
        };
        match line.as_str() {
            "^C" => *interrupt = true,
            line if line.trim_start_matches('-').is_empty() || line == "..." => {}
            line => quoted.push(line.to_owned()),
        }
    }
}

/// Returns the terminal and the command of a line with a prompt.
fn prompt(line: &str) -> Option<(&str, &str)> {
    let (terminal, rest) = line.split_once('$')?;
    let is_name = terminal.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    (is_name && (rest.is_empty() || rest.starts_with(' '))).then_some((terminal, rest.trim_start()))
}

/// Compares a line of output with what is quoted: by words, numbers by a tenth, those of a live block not at all.
pub(crate) fn is_like(quoted: &str, line: &str, is_live: bool) -> bool {
    let begin = quoted.strip_suffix(" ...");
    let mut words = line.split_whitespace();
    let alike = begin.unwrap_or(quoted).split_whitespace().all(|word| {
        let Some(other) = words.next() else { return false };
        let has_digit = |word: &str| word.contains(|c: char| c.is_ascii_digit());
        word == other || is_live && has_digit(word) && has_digit(other) || !is_live && is_near(word, other)
    });
    alike && (begin.is_some() || words.next().is_none())
}

fn is_near(a: &str, b: &str) -> bool {
    let number = |word: &str| word.trim_matches(|c: char| "(),;:%".contains(c)).parse::<f64>().ok();
    let (Some(a), Some(b)) = (number(a), number(b)) else { return false };
    (a - b).abs() <= 0.1 * a.abs().max(b.abs())
}
