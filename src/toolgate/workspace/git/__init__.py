"""Reading git history without trusting the repository.

Git never sees the repository itself. It is run on a *view*: a directory of ours with our own `config`, a snapshot of
the refs that we read through the mount's handle, and links to the repository's objects once they were checked. So no
line of the repository's config, hooks, attributes, grafts, replacements, alternates, commit-graph or multi-pack-index
is ever read by git, and there is no list of dangerous settings to keep up with. Overriding settings one by one with
`-c` was the other way: it fails open with every setting git adds.

    locate        where in a mount a repository is
    store         its objects, checked for links; its refs, read by us
    index         its index, checked, written anew
    view          the private GIT_DIR made of these
    repositories  the open ones, each with a commit-graph beside its view
    program       git itself: argv, environment, limits; one long-lived `cat-file --batch`
    history, blame, worktree: what the tools ask
    patch, commits: what git answers
"""
