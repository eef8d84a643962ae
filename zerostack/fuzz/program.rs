//! Random programs over `z`, made from bytes: every choice takes one byte, and no bytes mean the simplest program.
//!
//! They are valid JavaScript or TypeScript nearly always. They reach `z` in every way that a program can (by name, aliased,
//! destructured, computed, passed on), hand it values that are hostile (getters, proxies, thenables, forged handles), and
//! change what they run on (prototypes, globals).

/// Makes a program.
pub fn program(bytes: &[u8]) -> String {
    let mut maker = Maker { bytes, at: 0 };
    let mut text = String::from(
        "let v0 = z.read, v1 = 1, v2 = {a: 1}, v3 = [z]; const name = 'read', path = 'a.txt', calls = [];\n",
    );
    let statements = 1 + maker.pick(8);
    for _ in 0..statements {
        text += &maker.statement(3);
        text.push('\n');
    }
    text + "await Promise.allSettled(calls); return 'end'"
}

struct Maker<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Maker<'_> {
    /// One of `choices` numbers; 0 when the bytes are used up.
    fn pick(&mut self, choices: usize) -> usize {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        usize::from(byte) % choices
    }

    fn one(&mut self, of: &[&str]) -> String {
        of[self.pick(of.len())].to_owned()
    }

    fn variable(&mut self) -> String {
        self.one(&["v1", "v0", "v2", "v3"])
    }

    fn statement(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.kept_call();
        }
        let deeper = depth - 1;
        match self.pick(22) {
            0..=3 => self.kept_call(),
            4 => format!("{} = {};", self.variable(), self.z(2)),
            5 => format!("{} = {};", self.variable(), self.operation(2)),
            6 => format!("{} = {};", self.variable(), self.expression(deeper)),
            7 => format!(
                "try {{ {} }} catch (e) {{ {} }}",
                self.statement(deeper),
                self.statement(deeper)
            ),
            8 => format!(
                "if ({}) {{ {} }} else {{ {} }}",
                self.expression(1),
                self.statement(deeper),
                self.statement(deeper)
            ),
            9 => format!(
                "for (let i = 0; i < {}; i++) {{ {} }}",
                self.pick(4),
                self.statement(deeper)
            ),
            10 => format!(
                "for (const x of [{}, {}]) {{ {} }}",
                self.z(1),
                self.operation(1),
                self.statement(deeper)
            ),
            11 => format!(
                "try {{ const {{{}}} = {}; calls.push(read?.('a.txt')) }} catch {{}}",
                self.one(&[
                    "read",
                    "find, read",
                    "read: read = 1",
                    "state, ...read",
                    "['re' + 'ad']: read"
                ]),
                self.z(1)
            ),
            12 => format!(
                "{{ const z = {{read: (x) => x, state: {{}}, find: v0}}; {} }}",
                self.statement(deeper)
            ),
            13 => format!(
                "(function f(a, b = {}) {{ {} }})({});",
                self.z(1),
                self.statement(deeper),
                self.arguments()
            ),
            14 => format!(
                "await (async (x) => {{ {} }})({}).catch(() => {{}});",
                self.statement(deeper),
                self.z(1)
            ),
            15 => format!(
                "class C{} {{ static {{ try {{ {} }} catch {{}} }} get a() {{ return {} }} }}",
                self.pick(200),
                self.kept_call(),
                self.z(1)
            ),
            16 => self.change(),
            17 => self.typescript(deeper),
            18 => format!(
                "switch ({}) {{ case 1: {} break; default: {} }}",
                self.expression(1),
                self.statement(deeper),
                self.statement(deeper)
            ),
            19 => format!(
                "label{}: do {{ {} break label{} }} while (true)",
                depth,
                self.statement(deeper),
                depth
            ),
            20 => format!(
                "setTimeout(() => {{ try {{ {} }} catch {{}} }}, {});",
                self.kept_call(),
                self.pick(3)
            ),
            _ => match self.pick(8) {
                0 => format!("return {};", self.expression(deeper)),
                1 => format!("throw {};", self.expression(deeper)),
                2 => "await Promise.allSettled(calls);".to_owned(),
                3 => format!("console.log({});", self.expression(deeper)),
                _ => format!("await {};", self.state()),
            },
        }
    }

    /// A call whose promise is looked at in the end.
    fn kept_call(&mut self) -> String {
        format!("try {{ calls.push({}) }} catch {{}}", self.call())
    }

    /// An expression that is `z`, or holds it.
    fn z(&mut self, depth: usize) -> String {
        if depth == 0 {
            return "z".to_owned();
        }
        match self.pick(20) {
            0..=4 => "z".to_owned(),
            5 => format!("({})", self.z(depth - 1)),
            6 => "globalThis.z".to_owned(),
            7 => "globalThis['z']".to_owned(),
            8 => "globalThis[`${'z'}`]".to_owned(),
            9 => format!("[{}][0]", self.z(depth - 1)),
            10 => format!("({{q: {}}}).q", self.z(depth - 1)),
            11 => format!("(() => {})()", self.z(depth - 1)),
            12 => format!("((x) => x)({})", self.z(depth - 1)),
            13 => "z.valueOf()".to_owned(),
            14 => "Object.assign({}, z)".to_owned(),
            15 => "({...z})".to_owned(),
            16 => "Reflect.get(globalThis, 'z')".to_owned(),
            17 => format!("new Proxy({}, {{}})", self.z(depth - 1)),
            18 => format!("({} ?? {})", self.z(depth - 1), self.variable()),
            _ => format!("Object.create({})", self.z(depth - 1)),
        }
    }

    /// An expression that is one of the operations.
    fn operation(&mut self, depth: usize) -> String {
        let name = self.one(&[
            "read",
            "find",
            "read",
            "edit",
            "apply",
            "state.get",
            "state.set",
            "state.list",
        ]);
        let z = self.z(depth);
        match self.pick(10) {
            0..=3 => format!("{z}.{name}"),
            4 => format!("{z}?.{name}"),
            5 => format!("{z}['read']"),
            6 => format!("{z}[name]"),
            7 => format!("{z}['re' + 'ad']"),
            8 => format!("({z}.{name})"),
            _ => self.variable(),
        }
    }

    fn call(&mut self) -> String {
        let (operation, arguments) = (self.operation(2), self.arguments());
        match self.pick(40) {
            39 => self.one(&[
                "z.run(['true'])",
                "z.run('echo made > made.txt; exit 3')",
                "z.run(['none-such'], {timeoutMs: 100})",
            ]),
            0..=5 | 14..=38 => format!("{operation}({arguments})"),
            6 => format!("{operation}.call(null, {arguments})"),
            7 => format!("{operation}.apply(null, [{arguments}])"),
            8 => format!("Reflect.apply({operation}, null, [{arguments}])"),
            9 => format!("[{arguments}].map({operation})[0]"),
            10 => format!("{operation}(...[{arguments}])"),
            11 => format!("{operation}?.({arguments})"),
            12 => format!("{operation}.bind(null, 'a.txt')({arguments})"),
            _ => format!("{operation}`a.txt`"),
        }
    }

    fn state(&mut self) -> String {
        let key = self.one(&["'k'", "'other'", "name", "v1", "'x'.repeat(300)"]);
        match self.pick(5) {
            0 => format!("z.state.get({key})"),
            1 => format!("z.state.set({key}, {})", self.expression(2)),
            2 => format!("z.state.delete({key})"),
            3 => format!("z.state.test({key}, 1)"),
            _ => "z.state.list()".to_owned(),
        }
    }

    fn arguments(&mut self) -> String {
        let target = self.one(&[
            "'a.txt'",
            "path",
            "'src/lib.rs'",
            "'none'",
            "'../out'",
            "`new${v1}.txt`",
            "'.'",
            "v2",
            "''",
        ]);
        let more = match self.pick(14) {
            0..=2 => return target,
            3 => "{lines: [1, 2]}".to_owned(),
            4 => "{content: 'written'}, {expect: 'any'}".to_owned(),
            5 => "{create: 'made'}".to_owned(),
            6 => "{find: 'one', replacement: 'two'}".to_owned(),
            7 => "{remove: true}, {expect: 'any'}".to_owned(),
            8 => "{mode: 'text', limit: 3}".to_owned(),
            9 => {
                return "[{path: 'a.txt', find: 'one', replacement: 'six', count: 'all'}, {mkdir: 'made/dir'}]"
                    .to_owned();
            }
            10 => return "'z://blob/' + 'ab'.repeat(32)".to_owned(),
            11 => "{unknown: -1.5, deep: [null, true, {a: 'b'}]}".to_owned(),
            _ => self.expression(2),
        };
        format!("{target}, {more}")
    }

    fn expression(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.one(&["1", "'text'", "true", "null", "undefined", "v2"]);
        }
        let deeper = depth - 1;
        match self.pick(26) {
            0..=3 => self.one(&[
                "0",
                "-1",
                "1.5",
                "1e300",
                "'a'",
                "\"\\ud800\"",
                "`t`",
                "false",
                "null",
                "undefined",
                "NaN",
                "10n",
                "/r/g",
                "Symbol('s')",
            ]),
            4 => self.variable(),
            5 => format!("[{}, {}]", self.expression(deeper), self.expression(deeper)),
            6 => format!(
                "({{a: {}, 'b c': {}}})",
                self.expression(deeper),
                self.expression(deeper)
            ),
            7 => format!("`${{{}}}-`", self.expression(deeper)),
            8 => format!(
                "({} {} {})",
                self.expression(deeper),
                self.one(&["+", "===", "<", "&&", "??", "in", ","]),
                self.expression(deeper)
            ),
            9 => format!(
                "({} ? {} : {})",
                self.expression(deeper),
                self.expression(deeper),
                self.expression(deeper)
            ),
            10 => format!("await {}", self.call()),
            11 => format!(
                "({{get a() {{ return {} }}, toJSON() {{ return {} }}}})",
                self.z(1),
                self.expression(deeper)
            ),
            12 => format!("({{then(r) {{ r({}) }}}})", self.expression(deeper)),
            13 => format!(
                "new Proxy([{}], {{get(t, k) {{ return t[k] }}}})",
                self.expression(deeper)
            ),
            14 => "new Proxy({}, {get() { return z }, ownKeys() { return ['a'] }})".to_owned(),
            15 => format!(
                "(({}) => {})",
                self.one(&["a", "...a", "{a}", "[a] = []"]),
                self.expression(deeper)
            ),
            16 => "new Uint8Array([1, 2, 255])".to_owned(),
            17 => format!("new Map([[1, {}]])", self.expression(deeper)),
            18 => format!("'x'.repeat({})", self.one(&["3", "5000", "100000"])),
            19 => format!(
                "Array.from({{length: {}}}, (_, i) => [i])",
                self.one(&["3", "100", "3000"])
            ),
            20 => format!("Promise.resolve({})", self.expression(deeper)),
            21 => format!("Object.freeze({{z: {}}})", self.z(1)),
            22 => "(() => { const a = []; a.push(a); return a })()".to_owned(),
            23 => format!("structuredClone({})", self.expression(deeper)),
            24 => format!("new Error({})", self.expression(deeper)),
            _ => self.z(2),
        }
    }

    /// Changes what the program runs on.
    fn change(&mut self) -> String {
        let change = self.one(&[
            "Object.prototype.toJSON = () => ['changed']",
            "Array.prototype.toJSON = () => 'changed'",
            "String.prototype.toJSON = () => 'changed'",
            "Array.prototype.push = function (x) { this[this.length] = x; return x }",
            "Object.prototype.valueOf = function () { v0 = this.read ?? v0; return 1 }",
            "Object.prototype.toString = function () { v3 = [this]; return 'o' }",
            "Object.defineProperty(Object.prototype, 'then', {get() { return undefined }, configurable: true})",
            "Promise.prototype.then = Promise.prototype.then",
            "delete globalThis.Map",
            "globalThis.kept = z",
            "Function.prototype.call = Function.prototype.call",
            "Object.setPrototypeOf(v2, {get path() { return 'a.txt' }})",
            "z.read = () => 1",
            "globalThis.z = {}",
            "Error.prepareStackTrace = (e, sites) => sites",
            "Symbol.iterator in v3 && (v3[Symbol.iterator] = undefined)",
        ]);
        format!("try {{ {change} }} catch {{}}")
    }

    /// A statement that makes the program TypeScript.
    fn typescript(&mut self, depth: usize) -> String {
        match self.pick(9) {
            0 => format!("const t{}: any = {};", self.pick(250), self.expression(depth)),
            1 => format!(
                "try {{ calls.push(({} as any).read({})) }} catch {{}}",
                self.z(1),
                self.arguments()
            ),
            2 => format!(
                "try {{ calls.push({}!.read<string>({})) }} catch {{}}",
                self.z(0),
                self.arguments()
            ),
            3 => format!(
                "enum E{} {{ A, B = 'b'.length, C = {} }}",
                self.pick(250),
                self.one(&["3", "1 << 2"])
            ),
            4 => format!("interface I{} {{ z: typeof z; a?: number }}", self.pick(250)),
            5 => format!("type T{}<A> = A extends infer B ? B[] : never;", self.pick(250)),
            6 => format!(
                "await (async <T,>(x: T): Promise<void> => {{ {} }})(z);",
                self.statement(depth)
            ),
            7 => format!(
                "class D{}<T> {{ constructor(private readonly q: T) {{ try {{ calls.push(z.read(q as any)) }} catch {{}} }} }}",
                self.pick(250)
            ),
            _ => format!(
                "{{ abstract class A {{ abstract f(): void; g(this: A, x?: {}): asserts x {{}} }} }}",
                self.one(&["string", "typeof z", "[a: number, ...b: string[]]"])
            ),
        }
    }
}
