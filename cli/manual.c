#include "cli/manual.h"

#include <stdio.h>
#include <string.h>

typedef void print_flag(const struct tfc_program *program, const struct tfc_flag *flag);

static void for_each_flag(const struct tfc_program *program, print_flag *print) {
  const struct tfc_flag *flag;
  for (size_t i = 0; (flag = tfc_program_flag(program, i)); i++) print(program, flag);
}

static bool takes_value(const struct tfc_flag *flag) {
  return flag->kind != TFC_FLAG_BOOL && flag->kind != TFC_FLAG_ATTACHED;
}

// Prints `text` with `escape` before each character of `special`.
static void put_escaped(const char *text, const char *special, const char *escape) {
  for (; *text; text++) {
    if (strchr(special, *text)) fputs(escape, stdout);
    putchar(*text);
  }
}

static void put_words(const char *choices) { // prints "a|b" as "a b"
  for (; *choices; choices++) putchar(*choices == '|' ? ' ' : *choices);
}

// --- The manual page -----------------------------------------------------------------------------------------------
// A line must not begin with a full stop or an apostrophe: these are roff's commands.
static void put_roff(const char *text) {
  bool begins = true;
  for (; *text; text++) {
    if (begins && (*text == '.' || *text == '\'')) fputs("\\&", stdout);
    if (*text == '\\')
      fputs("\\e", stdout);
    else if (*text == '-')
      fputs("\\-", stdout);
    else
      putchar(*text);
    begins = *text == '\n';
  }
}

static void man_flag(const struct tfc_program *program, const struct tfc_flag *flag) {
  (void)program;
  printf(".TP\n");
  if (flag->letter) printf("\\fB\\-%c\\fR, ", flag->letter);
  printf("\\fB\\-\\-");
  put_roff(flag->name);
  printf("\\fR");
  const char *value = flag->choices ? flag->choices : flag->value;
  if (takes_value(flag) && value) {
    printf(" \\fI");
    put_roff(value);
    printf("\\fR");
  }
  printf("\n");
  put_roff(flag->help);
  printf(flag->required ? " (required)\n" : "\n");
}

static void print_man(const struct tfc_program *program) {
  printf(".TH \"");
  put_escaped(program->name, "", "");
  printf("\" 1 \"\" \"tfc %s\" \"tfc\"\n.SH NAME\n", TFC_VERSION);
  put_roff(program->name);
  printf(" \\- ");
  put_roff(program->summary);
  printf("\n.SH SYNOPSIS\n");
  put_roff(program->usage);
  printf("\n.SH EXAMPLES\n.nf\n");
  put_roff(program->examples);
  printf(".fi\n.SH OPTIONS\n");
  for_each_flag(program, man_flag);
  printf(".SH EXIT STATUS\n.nf\n");
  for (size_t i = 0; tfc_exit_codes[i]; i++) put_roff(tfc_exit_codes[i]), putchar('\n');
  if (program->exit_codes) put_roff(program->exit_codes), putchar('\n');
  printf(".fi\n.SH SEE ALSO\n.BR tfc\\-place (1),\n.BR tfc\\-run (1),\n.BR tfc\\-report (1),\n.BR tfc\\-export (1)\n");
}

// --- Completions for bash ------------------------------------------------------------------------------------------
static void bash_case(const struct tfc_program *program, const struct tfc_flag *flag) {
  (void)program;
  if (!takes_value(flag)) return;
  printf("    --%s) COMPREPLY=(", flag->name);
  if (flag->choices) {
    printf("$(compgen -W \"");
    put_words(flag->choices);
    printf("\" -- \"$word\")); return ;;\n");
  } else {
    printf("$(compgen -f -- \"$word\")); return ;;\n");
  }
}
static void bash_name(const struct tfc_program *program, const struct tfc_flag *flag) {
  (void)program;
  printf(" --%s", flag->name);
}

static void print_bash(const struct tfc_program *program) {
  char function[64];
  snprintf(function, sizeof function, "_%s", program->name);
  for (char *c = function; *c; c++)
    if (*c == '-') *c = '_';
  printf("%s() {\n  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n  case $before in\n",
         function);
  for_each_flag(program, bash_case);
  printf("  esac\n  if [[ $word == -* ]]; then\n    COMPREPLY=($(compgen -W \"");
  for_each_flag(program, bash_name);
  printf("\" -- \"$word\"))\n  else\n    COMPREPLY=($(compgen -W \"");
  if (program->commands) put_words(program->commands);
  printf("\" -- \"$word\") $(compgen -f -- \"$word\"))\n  fi\n}\ncomplete -o filenames -F %s %s\n", function,
         program->name);
}

// --- Completions for zsh -------------------------------------------------------------------------------------------
static void zsh_flag(const struct tfc_program *program, const struct tfc_flag *flag) {
  (void)program;
  printf(" \\\n  '%s--%s%s[", flag->kind == TFC_FLAG_TEXTS ? "*" : "", flag->name, takes_value(flag) ? "=" : "");
  for (const char *c = flag->help; *c; c++) {
    if (*c == '\'')
      fputs("'\\''", stdout);
    else if (strchr("[]:\\", *c))
      printf("\\%c", *c);
    else
      putchar(*c);
  }
  printf("]");
  if (takes_value(flag)) {
    printf(":%s:", flag->choices ? "choice" : "value");
    if (flag->choices) {
      putchar('(');
      put_words(flag->choices);
      putchar(')');
    } else {
      printf("_files");
    }
  }
  printf("'");
}

static void print_zsh(const struct tfc_program *program) {
  printf("#compdef %s\n_arguments", program->name);
  for_each_flag(program, zsh_flag);
  if (program->commands) {
    printf(" \\\n  '1:command:(");
    put_words(program->commands);
    printf(")'");
  }
  printf(" \\\n  '*:file:_files'\n");
}

// --- Completions for fish ------------------------------------------------------------------------------------------
static void fish_flag(const struct tfc_program *program, const struct tfc_flag *flag) {
  printf("complete -c %s -l %s", program->name, flag->name);
  if (flag->letter) printf(" -s %c", flag->letter);
  if (flag->choices) {
    printf(" -x -a '");
    put_words(flag->choices);
    printf("'");
  } else if (takes_value(flag)) {
    printf(" -r");
  }
  printf(" -d '");
  put_escaped(flag->help, "'\\", "\\");
  printf("'\n");
}

static void print_fish(const struct tfc_program *program) {
  for_each_flag(program, fish_flag);
  if (!program->commands) return;
  printf("complete -c %s -n __fish_use_subcommand -a '", program->name);
  put_words(program->commands);
  printf("'\n");
}

bool tfc_manual_print(const struct tfc_program *program, const char *kind) {
  static const struct {
    const char *kind;
    void (*print)(const struct tfc_program *program);
  } kinds[] = {{"man", print_man}, {"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (strcmp(kind, kinds[i].kind) != 0) continue;
    kinds[i].print(program);
    return true;
  }
  return false;
}
