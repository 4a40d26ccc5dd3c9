"""What an agent is made of: wires, prompts, models, the loop. No tools and no configuration of its own."""
