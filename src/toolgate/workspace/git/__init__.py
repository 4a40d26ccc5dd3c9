"""Reading git history without trusting the repository.

Git never sees the repository itself. It is run on a *view*: a directory of ours with our own `config`, a snapshot of
the refs that we read through the mount's handle, and links to the repository's object directories once they were
checked. So no line of the repository's config, hooks, attributes, grafts, replacements, alternates or commit-graph
is ever read by git, and there is no list of dangerous settings to keep up with. Overriding settings one by one with
`-c` was the other way: it fails open with every setting git adds.

    locate  where in a mount a repository is          refs    its refs, read by us
    store   its objects, checked for links            view    the private GIT_DIR made of both
    program git itself: argv, environment, limits     batch   one long-lived `cat-file --batch`
    graph   a commit-graph beside the view            memo    what git printed about ids
    history, blame, worktree, patch: what the tools ask
"""
